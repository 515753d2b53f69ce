//! What is changed at a device at work: the orders of the control socket.

use super::*;

/// An array of small members, served.
fn served_array(name: &str, more: &[(&str, &str)]) -> (Place, Server) {
    let place = Place::new(name, &[]);
    let text = flashtwin::spec::builtin_array("raid5-array").expect("built in");
    let mut all = vec![("member.geometry.blocks_per_plane", "32")];
    all.extend(more);
    let spec = flashtwin::ArraySpec::with_overrides(text, name, &all).expect("sound");
    fs::write(place.0.join("device.toml"), spec.to_toml()).expect("room");
    let server = place.start(&[("dilation", "0.01")]);
    (place, server)
}

fn erases(server: &Server) -> u64 {
    server.report().flash.erases
}

/// Writes pages all over until every die has whole blocks, some of them stale.
fn fill(server: &Server) {
    let pages = server.size_bytes() / 4096;
    let mut rng = Rng::new(3);
    for turn in 0..pages {
        let page = if turn % 8 == 0 {
            rng.below(turn + 1)
        } else {
            turn
        };
        server
            .connect()
            .write(&[turn as u8; 4096], page * 4096, turn % 64 == 0)
            .expect("room");
    }
    server.connect().flush().expect("answered");
}

#[test]
fn dies_collect_when_they_are_told() {
    let place = Place::new("collect", &[("buffer", "none")]);
    let server = place.start(&[("dilation", "0.001")]);
    fill(&server);
    let before = erases(&server);
    assert_eq!(server.collect(None, None).expect("it can"), 2);
    // The pacer lets it happen, though nobody asks for anything.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while erases(&server) < before + 8 {
        assert!(
            std::time::Instant::now() < deadline,
            "eight planes, a block each"
        );
        std::thread::yield_now();
    }
    let refusals = [
        (server.collect(None, Some(2)), "dies 0 to 1"),
        (server.collect(Some(0), None), "no array"),
    ];
    for (refused, why) in refusals {
        let said = refused.expect_err("refused").to_string();
        assert!(said.contains(why), "{said}");
    }
    server.stop().expect("a clean stop");
}

#[test]
fn members_collect_when_they_are_told() {
    let (_place, server) = served_array("collect-array", &[]);
    let members = server.collect(None, Some(0)).expect("each has one");
    assert!(members > 1);
    assert_eq!(server.collect(Some(1), Some(0)).expect("it has one"), 1);
    let said = server.collect(Some(99), None).expect_err("no such member");
    assert!(said.to_string().contains("members 0 to"), "{said}");
    server.fail_member(1).expect("one may");
    assert_eq!(
        server.collect(None, Some(0)).expect("the others"),
        members - 1
    );
    server.collect(Some(1), None).expect_err("it has failed");
}
