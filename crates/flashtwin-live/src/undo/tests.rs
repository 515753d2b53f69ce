//! The module is compared with a reference that copies all contents of all pages.

use std::collections::BTreeMap;

use super::*;

const PAGES: u64 = 6;
const PAGE: u64 = 1024;

/// The reference. Contents of a page are represented by a number. For each page: the contents in the store, the safe
/// contents, and the contents that page programs in progress write.
#[derive(Default)]
struct Reference {
    of: BTreeMap<u64, (u8, u8, VecDeque<u8>)>,
}

#[test]
fn a_power_loss_keeps_ended_programs() {
    let mut lost_ever = 0;
    for seed in flashtwin::seeds(300) {
        let mut rng = Rng::new(seed);
        let store = Store::memory(PAGES * PAGE).expect("memory");
        let undo = Undo::new(Durable::Programmed, PAGE as u32, PAGES * PAGE);
        let mut reference = Reference::default();
        for _ in 0..200 {
            let page = rng.below(PAGES);
            let bytes = page * PAGE..(page + 1) * PAGE;
            let (now, safe, carried) = reference.of.entry(page).or_default();
            let lpn = Lpn(page as u32);
            match rng.below(8) {
                0..=2 => {
                    *now = rng.below(256) as u8;
                    let data = [*now; PAGE as usize];
                    undo.change(&store, bytes, |part| store.write(&data, part.start))
                        .expect("room");
                }
                3 | 4 => {
                    carried.push_back(*now);
                    undo.on_program(PageProgram::Queued(lpn));
                }
                5 | 6 => {
                    let Some(value) = carried.pop_front() else {
                        continue;
                    };
                    match rng.below(10) {
                        0 => undo.on_program(PageProgram::Failed(lpn)),
                        _ => {
                            *safe = value;
                            undo.on_program(PageProgram::Ended(lpn));
                        }
                    }
                }
                _ => {
                    (*now, *safe) = (0, 0);
                    carried.iter_mut().for_each(|value| *value = 0);
                    undo.forget(bytes, || store.zero(page * PAGE, PAGE))
                        .expect("room");
                }
            }
        }
        let put = |from: &[u8], at| store.write_sparsely(from, at);
        let lost = undo.cut(&store, &[], None, put).expect("room");
        lost_ever += lost.len();
        for (page, (now, safe, _)) in reference.of {
            let mut read = [1; PAGE as usize];
            store.read(&mut read, page * PAGE).expect("there");
            assert_eq!(read, [safe; PAGE as usize], "page {page}, seed {seed}");
            assert!(
                now == safe || lost.contains(&page),
                "page {page}, seed {seed}"
            );
        }
        assert!(undo.lock().of.is_empty());
    }
    assert!(lost_ever > 100, "{lost_ever}");
}

#[test]
fn a_power_loss_keeps_flushed_writes() {
    for seed in flashtwin::seeds(300) {
        let mut rng = Rng::new(seed);
        let store = Store::memory(PAGES * PAGE).expect("memory");
        let undo = Undo::new(Durable::Flushed, PAGE as u32, PAGES * PAGE);
        let (mut now, mut safe) = ([0_u8; PAGES as usize], [0_u8; PAGES as usize]);
        // Flushes in flight. Each has its number and the contents of all pages when it was requested. If it is a forced
        // write, it also has the page.
        let mut flushes: Vec<(u64, [u8; PAGES as usize], Option<u64>)> = Vec::new();
        let mut value = 0;
        for _ in 0..100 {
            let page = rng.below(PAGES);
            let bytes = page * PAGE..(page + 1) * PAGE;
            match rng.below(8) {
                0..=4 => {
                    value += 1;
                    now[page as usize] = value;
                    let data = [value; PAGE as usize];
                    undo.change(&store, bytes, |part| store.write(&data, part.start))
                        .expect("room");
                }
                5 => flushes.push((undo.flush_asked(), now, None)),
                6 => flushes.push((undo.flush_asked(), now, Some(page))),
                _ if flushes.is_empty() => {}
                _ => {
                    let which = rng.below(flushes.len() as u64) as usize;
                    let (number, held, of) = flushes.swap_remove(which);
                    let bytes = of.map(|page| page * PAGE..(page + 1) * PAGE);
                    undo.flush_ended(number, bytes);
                    for page in (0..PAGES).filter(|page| of.is_none_or(|of| of == *page)) {
                        let safe = &mut safe[page as usize];
                        // The safe value must not decrease: a flush that was requested later may have completed first
                        // and made a newer value safe.
                        *safe = held[page as usize].max(*safe);
                    }
                }
            }
        }
        let all: Vec<Lpn> = (0..PAGES as u32).map(Lpn).collect();
        let put = |from: &[u8], at| store.write_sparsely(from, at);
        undo.cut(&store, &all, None, put).expect("room");
        for page in 0..PAGES {
            let mut read = [1; PAGE as usize];
            store.read(&mut read, page * PAGE).expect("there");
            assert_eq!(
                read, [safe[page as usize]; PAGE as usize],
                "page {page}, seed {seed}"
            );
        }
    }
}

#[test]
fn other_pages_are_restored_after_one_that_fails() {
    let store = Store::memory(PAGES * PAGE).expect("memory");
    let undo = Undo::new(Durable::Programmed, PAGE as u32, PAGES * PAGE);
    let write = |value| {
        let data = [value; (PAGES * PAGE) as usize];
        let put = |part: Range<u64>| {
            let length = (part.end - part.start) as usize;
            store.write(&data[..length], part.start)
        };
        undo.change(&store, 0..PAGES * PAGE, put).expect("room");
    };
    let holds = |page| {
        let mut read = [9; PAGE as usize];
        store.read(&mut read, page * PAGE).expect("there");
        assert!(read.iter().all(|&byte| byte == read[0]));
        read[0]
    };
    let all = || (0..PAGES as u32).map(Lpn);
    write(1);
    all().for_each(|lpn| undo.on_program(PageProgram::Queued(lpn)));
    let refused = [1, 4];
    let put = |from: &[u8], at| match refused.contains(&(at / PAGE)) {
        true => Err(io::Error::other(format!("page {}", at / PAGE))),
        false => store.write_sparsely(from, at),
    };
    let (pages, first) = undo.cut(&store, &[], None, put).expect_err("refused");
    assert_eq!((pages, &*first.to_string()), (2, "page 1"));
    for page in 0..PAGES {
        assert_eq!(holds(page), u8::from(refused.contains(&page)), "{page}");
    }
    // The next power loss does not depend on this one: it loses no writes that were acknowledged between the two.
    write(2);
    for lpn in all() {
        undo.on_program(PageProgram::Queued(lpn));
        undo.on_program(PageProgram::Ended(lpn));
    }
    let put = |from: &[u8], at| store.write_sparsely(from, at);
    let lost = undo.cut(&store, &[], None, put).expect("room");
    assert_eq!(lost, [0_u64; 0]);
    assert!((0..PAGES).all(|page| holds(page) == 2));
}

#[test]
fn pages_that_a_protected_buffer_could_not_write_are_lost() {
    let store = Store::memory(PAGES * PAGE).expect("memory");
    let undo = Undo::new(Durable::AtOnce, PAGE as u32, PAGES * PAGE);
    let nothing_to_put = |_: &[u8], _| -> io::Result<()> { panic!("no page has earlier contents") };
    let lost = undo.cut(&store, &[Lpn(1), Lpn(3)], None, nothing_to_put);
    assert_eq!(lost.expect("room"), [1, 3]);
}
