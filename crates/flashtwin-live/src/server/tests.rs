//! A whole server in one process: its data, its timing, and its restart.

mod orders;
mod power;
mod stop;

use std::path::PathBuf;

use flashtwin::Rng;

use super::*;

/// A directory with a small device. It is removed at the end of the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, overrides: &[(&str, &str)]) -> Place {
        let path = std::env::temp_dir().join(format!("flashtwin-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
        let mut all = vec![
            ("geometry.blocks_per_plane", "64"),
            ("geometry.chips", "2"),
            ("geometry.reserve_percent", "15"),
        ];
        all.extend_from_slice(overrides);
        let spec = flashtwin::DeviceSpec::with_overrides(profile, "demo", &all).expect("sound");
        fs::write(path.join("device.toml"), spec.to_toml()).expect("room");
        Place(path)
    }

    fn settings(&self, more: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        let device = self.0.join("device.toml");
        settings
            .set("device", &device.to_string_lossy())
            .expect("a path");
        for (key, value) in more {
            settings.set(key, value).expect("a setting");
        }
        settings
    }

    fn start(&self, more: &[(&str, &str)]) -> Server {
        let ready = PreparedServer::prepare(self.settings(more)).expect("sound settings");
        ready.start().expect("threads")
    }

    fn refusal(&self, more: &[(&str, &str)]) -> String {
        let refused = PreparedServer::prepare(self.settings(more)).err();
        refused.expect("is refused").to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Each thread writes its own pages, and all threads read one shared page. Every read must return the last write that
/// was acknowledged.
#[test]
fn reads_return_the_last_acknowledged_write() {
    for seed in flashtwin::seeds(1) {
        let place = Place::new("acknowledged", &[]);
        let server = place.start(&[("dilation", "0.01")]);
        server
            .connect()
            .write(&[42; 5000], 60 << 20, false)
            .expect("room");
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let server = &server;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * 6 + thread);
                    let base = thread * (4 << 20) + 123;
                    let mut mine = vec![0; 1 << 20];
                    for _ in 0..300 {
                        let length = 1 + rng.below(20_000);
                        let at = rng.below((1 << 20) - length);
                        let range = at as usize..(at + length) as usize;
                        let offset = base + at;
                        match rng.below(6) {
                            0 | 1 => {
                                let data = vec![rng.below(256) as u8; length as usize];
                                server
                                    .connect()
                                    .write(&data, offset, rng.below(2) == 0)
                                    .expect("room");
                                mine[range].copy_from_slice(&data);
                            }
                            2 => {
                                let may_trim = rng.below(2) == 0;
                                server
                                    .connect()
                                    .zero(offset, length, false, may_trim, false)
                                    .expect("room");
                                mine[range].fill(0);
                            }
                            3 => {
                                server.connect().trim(offset, length).expect("room");
                                mine[range].fill(0);
                                server.connect().flush().expect("completes");
                            }
                            _ => {
                                let mut read = vec![7; length as usize];
                                server.connect().read(&mut read, offset).expect("completes");
                                assert!(read == mine[range]);
                                let mut shared = [0; 100];
                                server
                                    .connect()
                                    .read(&mut shared, (60 << 20) + 77)
                                    .expect("completes");
                                assert_eq!(shared, [42; 100]);
                            }
                        }
                    }
                });
            }
        });
        server.stop().expect("a clean stop");
    }
}

#[test]
fn a_restart_finds_data_and_flash_as_they_were() {
    let place = Place::new("restart", &[]);
    let disk = place.0.join("disk.img");
    let report = place.0.join("report.json");
    let kept = [
        ("store", &*disk.to_string_lossy()),
        ("report", &*report.to_string_lossy()),
    ];
    let server = place.start(&kept);
    let data: Vec<u8> = (0..40 << 10).map(|i| (i % 251) as u8).collect();
    server.connect().write(&data, 8192, true).expect("room");
    let busy = place.refusal(&kept);
    assert!(busy.contains("another server uses this store"), "{busy}");
    server.stop().expect("a clean stop");
    assert!(state_path(&disk).exists());
    let message = fs::read_to_string(&report).expect("a report");
    assert!(message.contains("\"lateness\""), "{message}");
    drop(server);

    let server = place.start(&kept);
    let mut read = vec![0; data.len()];
    server.connect().read(&mut read, 8192).expect("completes");
    assert_eq!(read, data);
    // Reading the written pages takes flash time, because they are on flash now. Reading an unwritten page takes none.
    let p50_us = |server: &Server| server.report().responses.read.percentiles.p50_us;
    assert!(p50_us(&server) > 25.0, "{}", p50_us(&server));
    drop(server);

    let other = Place::new("restart-other", &[("geometry.chips", "4")]);
    let wrong = other.refusal(&kept[..1]);
    assert!(
        wrong.contains("holds") && wrong.contains("bytes"),
        "{wrong}"
    );
    let same_size = Place::new("restart-same", &[("nand.parallel_units", "2")]);
    let wrong = same_size.refusal(&kept[..1]);
    assert!(
        wrong.contains("nand.parallel_units is 4 in the snapshot"),
        "{wrong}"
    );

    let state = state_path(&disk);
    let whole = fs::read(&state).expect("a state");
    for (at, expected) in [(16, "has format"), (whole.len() / 2, "checksum is wrong")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 8;
        fs::write(&state, damaged).expect("room");
        let wrong = place.refusal(&kept[..1]);
        assert!(wrong.contains(expected), "{wrong}");
    }
    fs::write(&state, &whole[..whole.len() - 9]).expect("room");
    let wrong = place.refusal(&kept[..1]);
    assert!(wrong.contains("is truncated"), "{wrong}");
    fs::write(&state, &whole).expect("room");
    drop(place.start(&kept[..1]));
}

#[test]
fn the_exported_size_is_the_size_asked_for() {
    let place = Place::new("size", &[]);
    let server = place.start(&[("size", "10000000"), ("store", "none")]);
    assert_eq!(server.size_bytes(), 10_000_000);
    assert!(!server.has_extents());
    server
        .connect()
        .write(&[1], 9_999_999, false)
        .expect("the last byte");
    let beyond = [
        server.connect().write(&[1, 2], 9_999_999, false),
        server.connect().read(&mut [0; 2], 9_999_999),
        server.connect().trim(10_000_000, 1),
        server.connect().zero(u64::MAX, 2, false, true, false),
        server.extents(9_999_999, 2, |_| true),
    ];
    for response in beyond {
        assert_eq!(response.expect_err("beyond").errno(), libc::EINVAL);
    }
    let large = place.refusal(&[("size", "100000000000")]);
    assert!(large.contains("the device holds"), "{large}");
}

#[test]
fn zeros_that_must_be_written_are_not_fast() {
    let place = Place::new("fast", &[]);
    let server = place.start(&[]);
    let slow = server
        .connect()
        .zero(0, 4096, false, false, true)
        .expect_err("slow");
    assert_eq!(slow.errno(), libc::EOPNOTSUPP);
    server
        .connect()
        .zero(0, 4096, false, true, true)
        .expect("a trim");
    let asked = || {
        let requests = server.report().responses;
        (requests.trim.requests, requests.write.requests)
    };
    assert_eq!(asked(), (1, 0));
    // The range contains no whole page, so no page can be trimmed.
    let slow = server
        .connect()
        .zero(512, 4096, false, true, true)
        .expect_err("slow");
    assert_eq!(slow.errno(), libc::EOPNOTSUPP);
    assert_eq!(asked(), (1, 0));
    server
        .connect()
        .zero(512, 8192, false, true, true)
        .expect("a trim between two writes");
    assert_eq!(asked(), (2, 2));
}

#[test]
fn a_worn_out_device_keeps_its_data_and_takes_no_more() {
    for seed in flashtwin::seeds(1) {
        let place = Place::new("worn", &[("wear.erase_limit", "1")]);
        let server = place.start(&[("dilation", "0.001")]);
        let mut rng = Rng::new(seed);
        let mut held = vec![0_u8; 20_000];
        let refused = (0..300_000).find_map(|i: u32| {
            let page = rng.below(20_000);
            let byte = i as u8;
            match server.connect().write(&[byte; 512], page * 4096, true) {
                Ok(()) => {
                    held[page as usize] = byte;
                    None
                }
                Err(failure) => Some((page, failure.errno())),
            }
        });
        let (last, errno) = refused.expect("two erases a block are soon over");
        assert_eq!(errno, libc::EROFS);
        assert_eq!(
            server
                .connect()
                .trim(0, 4096)
                .expect_err("worn out")
                .errno(),
            libc::EROFS
        );
        for page in (0..20_000).filter(|&page| page != last) {
            let mut read = [0; 1];
            server
                .connect()
                .read(&mut read, page * 4096)
                .expect("completes");
            assert_eq!(read[0], held[page as usize], "page {page}");
        }
    }
}

#[test]
fn errors_of_settings_name_valid_values() {
    let mut settings = Settings::default();
    for (key, value) in [
        ("dilation", "0"),
        ("size", "0"),
        ("size", "x"),
        ("colour", "red"),
        ("umask", "8"),
        ("umask", "1000"),
    ] {
        let message = settings.set(key, value).expect_err("wrong").to_string();
        assert!(
            message.starts_with(&format!("{key}={value}: ")),
            "{message}"
        );
    }
    let message = PreparedServer::prepare(settings)
        .err()
        .expect("no device")
        .to_string();
    assert!(message.contains("device=FILE is missing"), "{message}");
}
