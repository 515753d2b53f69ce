//! Saving and loading arrays.

use super::{array, do_alone, paced, request};
use flashtwin::{Array, Op, StateError, Time};

fn make() -> Array {
    array("raid6", "harmonia*5", &[])
}

fn worn() -> Array {
    let mut device = make();
    device.fill_steady(3);
    paced(&mut device, Op::Write, 400, Time::from_us(300), 1);
    super::until_idle(&mut device);
    device
}

fn saved(array: &Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.save_state(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_loaded_array_continues_as_the_saved_one() {
    for failed in [None, Some(2)] {
        let mut device = worn();
        if let Some(member) = failed {
            device.fail_member(member).unwrap();
        }
        let bytes = saved(&device);
        let mut other = make();
        other.load_state(&mut &bytes[..]).unwrap();
        assert_eq!(saved(&other), bytes);
        if let Some(member) = failed {
            assert!(other.fail_member(member).is_err());
        }
        let mut times = [&mut device, &mut other].map(|device| {
            let every = Time::from_us(300);
            let writes = paced(device, Op::Write, 300, every, 7);
            let reads = paced(device, Op::Read, 300, every, 8);
            [writes, reads].concat()
        });
        assert_eq!(times[0].len(), 600);
        let [of_saved, of_loaded] = &mut times;
        assert_eq!(of_saved, of_loaded);
    }
}

/// The state of an array that lost data, with operations in flight that never complete, can be saved but not loaded.
#[test]
fn an_array_that_lost_data_with_work_in_flight_is_saved_and_not_loaded() {
    let mut device = make();
    device.fill_sequential();
    for page in 0..64 {
        device
            .submit(Time::ZERO, &request(Op::Write, page, 1), page)
            .unwrap();
    }
    device.advance(Time::from_us(300));
    for member in [0, 1, 2] {
        device.fail_needed_member(member).unwrap();
    }
    super::until_idle(&mut device);
    let refused = make().load_state(&mut &saved(&device)[..]).unwrap_err();
    let message = "member 0 is missing, and data with it";
    assert!(refused.to_string().contains(message), "{refused}");
}

#[test]
fn an_invalid_state_is_refused_and_changes_nothing() {
    let bytes = saved(&worn());
    make().load_state(&mut &bytes[..]).unwrap();
    let mut device = make();
    device.fill_sequential();
    let before = saved(&device);
    let mut changed = vec![bytes[..bytes.len() - 1].to_vec(), Vec::new()];
    // Invalid marks of members: a mark without a meaning, and marks by which more members are missing than the
    // redundancy permits.
    for marks in [&[1, 2, 1, 1, 1], &[0, 1, 0, 0, 1]] {
        let mut other = bytes.clone();
        other[..5].copy_from_slice(marks);
        changed.push(other);
    }
    // A cursor that is beyond the array.
    let mut other = bytes.clone();
    other[13..17].copy_from_slice(&[0xff; 4]);
    changed.push(other);
    // Recorded lengths of a member's state that differ from the actual length.
    for length in [0, 100, u64::MAX] {
        let mut other = bytes.clone();
        other[5..13].copy_from_slice(&u64::to_le_bytes(length));
        changed.push(other);
    }
    for bytes in changed {
        let refused: Result<(), StateError> = device.load_state(&mut &bytes[..]);
        assert!(refused.is_err());
        assert_eq!(saved(&device), before);
    }
    do_alone(&mut device, &request(Op::Read, 0, 1));
}

#[test]
#[should_panic(expected = "while a member is rebuilt")]
fn an_array_is_not_saved_while_a_member_is_rebuilt() {
    let mut device = make();
    device.fail_member(1).unwrap();
    device.replace_member(1).unwrap();
    saved(&device);
}
