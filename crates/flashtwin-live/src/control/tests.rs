//! Valid commands, and lines that are not valid commands.

use super::*;

fn read(line: &str) -> Result<Command, String> {
    serde_json::from_str(line).map_err(|e| e.to_string())
}

#[test]
fn commands_are_read() {
    let cut = |torn| Ok(Command::PowerCut { torn });
    assert_eq!(read(r#"{"do": "stats"}"#), Ok(Command::Stats {}));
    assert_eq!(read(r#"{"do": "power-cut"}"#), cut(false));
    assert_eq!(read(r#"{"do": "power-cut", "torn": true}"#), cut(true));
    let fail = read(r#"{"do": "fail", "member": 3}"#);
    assert_eq!(fail, Ok(Command::Fail { member: 3 }));
    let collect = |member, die| Ok(Command::Collect { member, die });
    assert_eq!(read(r#"{"do": "collect"}"#), collect(None, None));
    let both = read(r#"{"do": "collect", "member": 1, "die": null}"#);
    assert_eq!(both, collect(Some(1), None));
    let dead = read(r#"{"do": "kill-die", "die": 3}"#);
    assert_eq!(dead, Ok(Command::KillDie { die: 3 }));
    let slow = read(r#"{"do": "slow", "member": 1, "times": 2.5}"#);
    let times = 2.5;
    assert_eq!(slow, Ok(Command::Slow { member: 1, times }));
    let policy = |set: &[(&str, &str)]| {
        let set = set.iter().map(|&(k, v)| (k.into(), v.into())).collect();
        let name = "cflru".into();
        Ok(Command::Policy { name, set })
    };
    assert_eq!(read(r#"{"do": "policy", "name": "cflru"}"#), policy(&[]));
    let set = read(r#"{"do": "policy", "name": "cflru", "set": {"buffer.window": "0.5"}}"#);
    assert_eq!(set, policy(&[("buffer.window", "0.5")]));
    let set = read(r#"{"do": "set", "keys": {"buffer.window": "0.5"}}"#);
    let keys = BTreeMap::from([("buffer.window".into(), "0.5".into())]);
    assert_eq!(set, Ok(Command::Set { keys }));
    let how = Disturbance {
        latency_us: 500,
        ..Disturbance::default()
    };
    let disturb = read(r#"{"do": "disturb", "latency_us": 500}"#);
    assert_eq!(disturb, Ok(Command::Disturb(how)));
    for wrong in [
        r#"{"do": "disturb", "latency": 500}"#,
        r#"{"do": "disturb", "latency_us": -1}"#,
        "",
        "stats",
        "[]",
        "{}",
        r#"{"do": "explode"}"#,
        r#"{"do": "fail"}"#,
        r#"{"do": "collect", "die": -1}"#,
        r#"{"do": "kill-die"}"#,
        r#"{"do": "policy"}"#,
        r#"{"do": "set"}"#,
        r#"{"do": "set", "keys": ["buffer.window=1"]}"#,
        r#"{"do": "slow", "member": 1}"#,
        r#"{"do": "policy", "name": "lru", "set": ["buffer.window=1"]}"#,
        r#"{"do": "fail", "member": -1}"#,
        r#"{"do": "stats", "more": 1}"#,
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_line_ends_at_its_newline_its_limit_or_a_timeout() {
    let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
    client.write_all(b"first\nsecond").expect("room");
    assert_eq!(line(&server).expect("read"), Some(b"first".to_vec()));
    let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
    client.write_all(&[b'x'; 2 * LINE_BYTES_MAX]).expect("room");
    assert_eq!(line(&server).expect("read"), None);
    let (client, server) = UnixStream::pair().expect("a pair of sockets");
    assert_eq!(line(&server).expect("read"), None);
    drop(client);
    assert_eq!(line(&server).expect("read"), Some(Vec::new()));
}
