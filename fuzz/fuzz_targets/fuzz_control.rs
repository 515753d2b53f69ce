//! The control socket of a served device. The response to any line is one line of JSON, and the server continues to
//! run.
#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use flashtwin::DeviceSpec;
use flashtwin_live::{Control, PreparedServer, Server, Settings};
use libfuzzer_sys::fuzz_target;

struct Serving {
    socket: PathBuf,
    server: Arc<Server>,
    _control: Control,
}

static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let place = std::env::temp_dir().join(format!("flashtwin_fuzz_{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a temporary directory");
    let changes = [
        ("geometry.blocks_per_plane", "64"),
        ("geometry.chips", "2"),
        ("geometry.reserve_percent", "15"),
    ];
    let demo = flashtwin::spec::builtin("demo").expect("it is built in");
    let spec = DeviceSpec::with_overrides(demo, "demo", &changes).expect("a sound device");
    let device = place.join("device.toml");
    std::fs::write(&device, spec.to_toml()).expect("room for a small file");
    let mut settings = Settings::default();
    settings
        .set("device", &device.to_string_lossy())
        .expect("a path");
    settings.set("dilation", "0.01").expect("a number");
    let server = Arc::new(
        PreparedServer::prepare(settings)
            .expect("sound settings")
            .start()
            .expect("threads"),
    );
    let socket = place.join("control");
    let control = Control::start(server.clone(), &socket).expect("a socket");
    Serving {
        socket,
        server,
        _control: control,
    }
});

fuzz_target!(|line: &[u8]| {
    // A stop would end the fuzzer.
    if line.windows(4).any(|part| part == b"stop") || line.contains(&b'\\') {
        return;
    }
    let mut client = UnixStream::connect(&SERVING.socket).expect("it listens");
    // If a line is too long, the server may respond and close the connection before it has read all of it.
    let _ = client
        .write_all(line)
        .and_then(|()| client.write_all(b"\n"));
    let _ = client.shutdown(Shutdown::Write);
    let mut response = String::new();
    if client.read_to_string(&mut response).is_ok() {
        let response: serde_json::Value = serde_json::from_str(&response).expect("a line of JSON");
        assert!(response.is_object());
    }
    let mut page = [0; 4096];
    let read = SERVING.server.connect().read(&mut page, 0);
    // Data on dead dies are lost. The server reports that, and does not hang or panic.
    drop(read);
});
