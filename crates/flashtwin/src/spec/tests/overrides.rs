//! Overrides given as `--set key=value`.

use super::{small_with, SMALL};
use crate::component::{Pages, Settings};
use crate::spec::{builtin, EvictMode, Nand};
use crate::DeviceSpec;

fn set(text: &str, overrides: &[(&str, &str)]) -> DeviceSpec {
    DeviceSpec::with_overrides(text, "t.toml", overrides).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(overrides: &[(&str, &str)]) -> String {
    DeviceSpec::with_overrides(SMALL, "t.toml", overrides)
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn values_may_be_toml_or_bare_words() {
    let spec = set(
        SMALL,
        &[("buffer.capacity", "64KiB"), ("buffer.policy", "gcar-lru")],
    );
    let buffer = spec.buffer.unwrap();
    assert_eq!(buffer.capacity_pages, 16);
    assert_eq!((buffer.policy.base, buffer.policy.gcar), ("lru", true));
    let spec = set(
        SMALL,
        &[
            ("buffer.capacity", "\"64 KiB\""),
            ("name", "7"),
            ("gc.low_percent", "6.5"),
        ],
    );
    assert_eq!((spec.name.as_str(), spec.gc.low_percent), ("7", 6.5));
    assert_eq!(set(SMALL, &[("name", "\"x\"")]).name, "x");
}

#[test]
fn none_removes_a_key_or_a_section() {
    assert_eq!(set(SMALL, &[("buffer", "none")]).buffer, None);
    let text = small_with("capacity =", "policy = \"cflru\"\nwindow = 3\ncapacity =");
    let spec = set(&text, &[("buffer.window", "none")]);
    assert_eq!(
        spec.buffer.unwrap().policy.settings.get::<Pages>("window"),
        Pages(2)
    );
    let spec = set(SMALL, &[("buffer", "none"), ("buffer.capacity", "4KiB")]);
    assert_eq!(spec.buffer.unwrap().capacity_pages, 1);
}

#[test]
fn an_override_drops_what_it_makes_meaningless() {
    let text = small_with("capacity =", "policy = \"cflru\"\nwindow = 3\ncapacity =");
    let lru = set(&text, &[("buffer.policy", "lru")]).buffer.unwrap();
    assert_eq!(
        (lru.policy.base, lru.policy.settings),
        ("lru", Settings::default())
    );
    let tlc = builtin("tlc-client").unwrap();
    let spec = set(tlc, &[("buffer.evict", "blocking")]);
    assert_eq!(spec.buffer.unwrap().evict, EvictMode::Blocking);
    let overrides = [
        ("nand.backend", "msr"),
        ("ftl.placement", "static"),
        ("geometry.channels", "none"),
    ];
    assert!(matches!(set(tlc, &overrides).nand, Nand::Msr(_)));
}

#[test]
fn a_wrong_override_is_named_as_it_was_given() {
    assert_eq!(
        refused(&[("buffer.capcity", "1MiB")]),
        "--set buffer.capcity=1MiB: buffer.capcity: unknown key; did you mean \"capacity\"?"
    );
    assert_eq!(
        refused(&[("bufer", "none")]),
        "--set bufer=none: bufer: unknown key; did you mean \"buffer\"?"
    );
    assert_eq!(
        refused(&[("buffer", "32MiB")]),
        "--set buffer=32MiB: buffer: is a section; set one of its keys, as in \
         buffer.capacity=32MiB"
    );
    assert_eq!(
        refused(&[("geometry.chips", "many")]),
        "--set geometry.chips=many: geometry.chips: found \"many\"; must be a whole number from 1 \
         to 65535"
    );
    assert_eq!(
        refused(&[("buffer.window", "4")]),
        "--set buffer.window=4: buffer.window: has no effect here; it needs buffer.policy = \
         \"cflru\""
    );
    // The value of an override cannot add further keys.
    assert!(refused(&[("geometry.chips", "1\nx = 2")]).contains("found \"1\\nx = 2\""));
    assert!(refused(&[("geometry.chips", "none")]).contains("geometry.chips: missing"));
}
