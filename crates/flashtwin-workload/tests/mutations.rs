//! Damaged files. Samples with bytes changed, cut off, doubled or swapped must be either read or rejected, without a
//! panic or an endless loop.

use flashtwin_workload::{read_bytes, Addresses, BlkEvent, Format, TraceOptions, Volumes};
use std::path::PathBuf;

/// The generator xorshift64*, which suffices to choose bytes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    const SYNTAX: &[u8] = b"0123456789,. -+\n\r\tRWDFTQ#\0\xff";
    for _ in 0..=dice.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = dice.below(bytes.len());
        match dice.below(6) {
            0 => bytes[at] = dice.below(256) as u8,
            1 => bytes[at] = SYNTAX[dice.below(SYNTAX.len())],
            2 => bytes.insert(at, SYNTAX[dice.below(SYNTAX.len())]),
            3 => {
                bytes.remove(at);
            }
            4 => bytes.truncate(at),
            _ => {
                let end = (at + 1 + dice.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

#[test]
fn mutated_samples_never_panic() {
    for seed in flashtwin::seeds(2) {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces");
        let mut dice = Dice(0x5eed + seed);
        let mut good = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let sample = std::fs::read(entry.unwrap().path()).unwrap();
            for _ in 0..600 {
                let mut bytes = sample.clone();
                mutate(&mut dice, &mut bytes);
                let opts = TraceOptions {
                    format: (dice.below(3) == 0)
                        .then(|| Format::ALL[dice.below(Format::ALL.len())]),
                    event: if dice.below(2) == 0 {
                        BlkEvent::D
                    } else {
                        BlkEvent::Q
                    },
                    volumes: [
                        Volumes::EndToEnd,
                        Volumes::Overlay,
                        Volumes::Only("0".into()),
                    ][dice.below(3)]
                    .clone(),
                    addresses: Addresses::ALL[dice.below(2)],
                    max_bad_lines: dice.below(3) as u64,
                    reorder_window: dice.below(3) * 8,
                    ..TraceOptions::default()
                };
                good += usize::from(read_bytes(&bytes, &opts).is_ok());
            }
        }
        assert!(
            good > 500,
            "only {good} mutated samples still read: the mutations are too rough"
        );
    }
}

/// Damaged tables with dates, times between requests, operation codes and hexadecimal numbers in named columns, as
/// UTF-8 and UTF-16. Some of the descriptions of the columns are damaged, too.
#[test]
fn mutated_tables_never_panic() {
    let tables = [
        (
            "time=ts:datetime,offset=lba:sectors,size=len:bytes,op=type",
            "ts,lba,len,type\n",
            "2024-02-29T23:59:59.5,8,4096,R\n2024-03-01 00:00:00,16,512,Write\n",
        ),
        (
            "gap=1:us,offset=2:4096,op=3:read=1|a:write=2",
            "",
            "5,1,a\n1e3,0x10,2\n0,7,1\n",
        ),
        (
            "offset=addr:hex:pages",
            "# made by a program\naddr process\n",
            "ff some thing\n1a0 x\n",
        ),
    ];
    let utf16 = |text: &str, is_little: bool| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        let bytes = |unit: u16| match is_little {
            true => unit.to_le_bytes(),
            false => unit.to_be_bytes(),
        };
        units.flat_map(bytes).collect()
    };
    for seed in flashtwin::seeds(2) {
        let mut dice = Dice(0xda7e + seed);
        let mut good = 0;
        for (columns, header, rows) in tables {
            let text = header.to_string() + &rows.repeat(3);
            let samples = [
                text.clone().into_bytes(),
                utf16(&text, true),
                utf16(&text, false),
            ];
            for sample in &samples {
                let opts = TraceOptions {
                    columns: Some(columns.into()),
                    ..TraceOptions::default()
                };
                read_bytes(sample, &opts).unwrap();
            }
            for _ in 0..600 {
                let mut bytes = samples[dice.below(3)].clone();
                mutate(&mut dice, &mut bytes);
                let mut columns = columns.as_bytes().to_vec();
                if dice.below(4) == 0 {
                    mutate(&mut dice, &mut columns);
                }
                let opts = TraceOptions {
                    columns: Some(String::from_utf8_lossy(&columns).into_owned()),
                    max_bad_lines: dice.below(3) as u64,
                    ..TraceOptions::default()
                };
                good += usize::from(read_bytes(&bytes, &opts).is_ok());
            }
        }
        for magic in [
            b"PAR1".as_slice(),
            b"ARROW1\0\0",
            b"\xff\xff\xff\xff\x10\0\0\0",
        ] {
            for _ in 0..100 {
                let mut bytes = magic.repeat(3);
                mutate(&mut dice, &mut bytes);
                let _ = read_bytes(&bytes, &TraceOptions::default());
            }
        }
        assert!(good > 200, "only {good} mutated tables still read");
    }
}

#[test]
fn mutated_packed_samples_never_panic() {
    for seed in flashtwin::seeds(2) {
        let text = "0,W,0,4096\n10,R,4096,4096\n".repeat(50);
        let packed = [zstd::encode_all(text.as_bytes(), 1).unwrap(), {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
            gz.finish().unwrap()
        }];
        let mut dice = Dice(0xfeed + seed);
        for whole in packed {
            for _ in 0..500 {
                let mut bytes = whole.clone();
                mutate(&mut dice, &mut bytes);
                let opts = TraceOptions {
                    limit: Some(10_000),
                    ..TraceOptions::default()
                };
                let _ = read_bytes(&bytes, &opts);
            }
        }
    }
}

#[test]
fn mutated_tables_and_columns_never_panic() {
    for seed in flashtwin::seeds(2) {
        let text = "a,len,type,lba,\"no,te\",ts\n0,4096.0,R,1.6e+01,x,1e3\n1,512.0,W,1.0,,25.5e2\n"
            .repeat(3);
        let columns = "time=ts:us,offset=4:sectors,size=len:bytes,op=type:read=R,volume=a";
        let mut dice = Dice(0xface + seed);
        for _ in 0..4000 {
            let mut bytes = text.clone().into_bytes();
            let mut option = columns.as_bytes().to_vec();
            mutate(&mut dice, &mut bytes);
            if dice.below(2) == 0 {
                mutate(&mut dice, &mut option);
            }
            let opts = TraceOptions {
                columns: Some(String::from_utf8_lossy(&option).into_owned()),
                max_bad_lines: dice.below(6) as u64,
                ..TraceOptions::default()
            };
            let _ = read_bytes(&bytes, &opts);
        }
    }
}

#[test]
fn mutated_cachesim_records_never_panic() {
    for seed in flashtwin::seeds(2) {
        let mark = 0x1234_5678_9abc_def0_u64.to_le_bytes();
        let mut dice = Dice(0xcafe + seed);
        for version in 0..10u8 {
            let mut whole = if version == 0 { vec![] } else { vec![0; 1024] };
            if version > 0 {
                whole[..8].copy_from_slice(&mark);
                whole[8] = version;
                whole[1016..].copy_from_slice(&mark);
            }
            whole.extend((0..600u32).map(|i| (i % 13) as u8));
            for _ in 0..300 {
                let mut bytes = whole.clone();
                mutate(&mut dice, &mut bytes);
                for format in [None, Some(Format::OracleGeneral), Some(Format::Lcs)] {
                    let opts = TraceOptions {
                        format,
                        reorder_window: 64,
                        ..TraceOptions::default()
                    };
                    let _ = read_bytes(&bytes, &opts);
                }
            }
        }
    }
}
