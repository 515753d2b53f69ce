//! Rules at the other end of a socket: they give the same results as rules in the same process, and a device survives
//! their failure.

use std::cmp::Reverse;
use std::thread;

use flashtwin::placement::{script, Placed, Setup};
use flashtwin::Rng;

use super::*;

/// A scheme whose choices depend on all data that a scheme receives. It places survivors of GC by age.
#[derive(Clone, Default)]
struct Mine {
    closed: u64,
    erased: u64,
    trimmed: u64,
}

impl Scheme for Mine {
    fn needs(&self) -> Needs {
        Needs {
            age: true,
            moves: true,
            old: true,
            survivors: Survivors::Scheme,
            ..Needs::classes(3)
        }
    }

    fn name(&self) -> &str {
        "Mine"
    }

    fn host(&mut self, page: &HostPage) -> Class {
        let seen = self.closed + 3 * self.erased + 5 * self.trimmed + page.clock;
        let old = page.old_class.map_or(7, u64::from);
        let age = if page.age == u64::MAX { 1 } else { page.age };
        ((seen + old + age + u64::from(page.handle) + page.id.map_or(2, u64::from)) % 3) as Class
    }

    fn moved(&mut self, page: &MovedPage) -> Class {
        ((page.age + u64::from(page.moves) + u64::from(page.from)) % 3) as Class
    }

    fn closed(&mut self, unit: &UnitView, clock: u64) {
        self.closed += u64::from(unit.live) + clock - unit.opened_at;
    }

    fn erased(&mut self, unit: &UnitView, valid: u32, _clock: u64) {
        self.erased += u64::from(unit.erases + valid) + u64::from(unit.survivors);
    }

    fn trimmed(&mut self, lpn: Lpn) {
        self.trimmed += u64::from(lpn.0);
    }
}

/// A victim rule whose choice depends on every number in the description of a unit.
#[derive(Clone)]
struct Choose;

impl UserVictim for Choose {
    fn choose(&mut self, pool: &VictimPool) -> Option<u32> {
        let in_use: u32 = pool.in_use.iter().sum();
        let units = pool.units.iter().enumerate();
        let best = units.min_by_key(|(_, unit)| {
            let recent = pool.clock - unit.last_death < u64::from(in_use);
            (
                unit.valid + u32::from(recent),
                Reverse(unit.age),
                unit.erases,
                unit.opened_at,
            )
        });
        best.map(|(at, _)| at as u32)
    }

    fn name(&self) -> &str {
        "Choose"
    }

    fn boxed_clone(&self) -> Box<dyn UserVictim> {
        Box::new(self.clone())
    }
}

fn mine() -> UserRules {
    UserRules {
        scheme: Some(Box::new(Mine::default())),
        victim: Some(Box::new(Choose)),
    }
}

fn setup() -> Setup {
    let text = "units=60 unit_pages=8 logical_pages=300 handles=ii,ii low=6";
    let words: Vec<_> = (text.split(' ').filter_map(|word| word.split_once('=')))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Setup::of_words(&words).unwrap()
}

fn write(device: &mut Placed, seed: u64, pages: u32) {
    let mut rng = Rng::new(seed);
    for _ in 0..pages {
        let lpn = Lpn(rng.below(300) as u32);
        match rng.below(20) {
            0 => device.trim(lpn, 1),
            n => {
                let id = (n % 3 < 2).then_some((n % 3) as u16);
                device.write(lpn, 1, id, &[]).unwrap();
            }
        }
    }
}

#[test]
fn rules_over_a_socket_do_what_they_do_in_place() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || reply_for_rules(theirs, mine(), || false));
    let remote = RemoteRules::connect(ours).unwrap();
    let mut far = Placed::with_rules(&setup(), &remote.rules).unwrap();
    let mut near = Placed::with_rules(&setup(), &mine()).unwrap();
    assert_eq!((far.scheme_name(), far.victim_name()), ("Mine", "Choose"));
    write(&mut far, 3, 3000);
    write(&mut near, 3, 3000);
    assert_eq!(script::state_text(&far), script::state_text(&near));
    assert!(near.report().moves > 100);
    assert!(!remote.failed.load(Ordering::Relaxed));
    drop((far, remote));
    other.join().unwrap().unwrap();
}

#[test]
fn a_device_outlives_its_rules() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let left = std::sync::atomic::AtomicU32::new(500);
    let stop = move || left.fetch_sub(1, Ordering::Relaxed) == 0;
    let other = thread::spawn(move || reply_for_rules(theirs, mine(), stop));
    let remote = RemoteRules::connect(ours).unwrap();
    let mut device = Placed::with_rules(&setup(), &remote.rules).unwrap();
    let mut rng = Rng::new(1);
    // Once the rules have failed, no unit is collected. Finally a write finds no free unit.
    let end = (0..5000).find(|_| {
        let lpn = Lpn(rng.below(300) as u32);
        device.write(lpn, 1, None, &[]).is_err()
    });
    assert!(end.is_some());
    assert!(remote.failed.load(Ordering::Relaxed));
    other.join().unwrap().unwrap();
}

#[test]
fn nonsense_from_the_other_side_is_an_error() {
    for seed in flashtwin::seeds(200) {
        let mut rng = Rng::new(seed);
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..1 + rng.below(12) {
            let count = rng.below(12);
            let mut words = vec![rng.below(9), count];
            words.extend((0..count).map(|_| match rng.below(3) {
                0 => u64::MAX,
                1 => rng.below(u64::MAX),
                _ => rng.below(8),
            }));
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        let sent = |bytes: &[u8]| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            // An error is ignored: the other end may close the connection before it has received all bytes.
            let _ = ours.write_all(bytes);
            ours.shutdown(std::net::Shutdown::Write).unwrap();
            (ours, theirs)
        };
        let (_ours, theirs) = sent(&bytes);
        let _ = reply_for_rules(theirs, mine(), || false);
        let (_ours, theirs) = sent(&bytes);
        let _ = RemoteRules::connect(theirs);
    }
}
