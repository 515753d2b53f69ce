//! Plans a write to a page stripe: which pages to read first, and which pages to write afterwards.
//!
//! Two methods give the new parity. Read-modify-write reads the pages to be overwritten and the parity.
//! Reconstruct-write reads the data that are not overwritten. The method with fewer reads is chosen, and
//! read-modify-write if both read equally many pages. If members are missing, a method that reads no missing page is
//! chosen. If both methods would read a missing page, the remaining pages are read, and the missing data are
//! reconstructed.
//!
//! Every page stripe is planned separately. DiskSim (disksim_redun.c) instead plans whole rows: it treats a write that
//! touches all units of a row as a full-stripe write, even if some units are written only in part. Its parity is then
//! wrong.

/// Set of places of a page stripe, as bits: data place k is bit k, parity j is bit `data + j`.
pub(crate) type Places = u64;

/// How the new parity is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing is read, since every data place is written.
    Write,
    /// The new parity is computed from the old parity and from the old and new data of the written pages.
    ReadModifyWrite,
    /// The new parity is computed from all data of the stripe: those written, and those read.
    ReconstructWrite,
    /// The new parity is computed from all data of the stripe, after the missing data have been reconstructed from the
    /// pages that are present.
    Recover,
    /// No parity is computed: only a part of the stripe is written, and all its parity is missing.
    WithoutParity,
}

/// The reads and writes that a write to a stripe needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub method: Method,
    pub reads: Places,
    pub writes: Places,
}

fn bits(n: usize) -> Places {
    (1 << n) - 1
}

/// Returns the places of a set, in ascending order.
#[inline]
pub(crate) fn each(mut places: Places) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = (places != 0).then(|| places.trailing_zeros())?;
        places &= places - 1;
        Some(place)
    })
}

/// Returns the number of places in a set. Because sets are small, this loop is at least as fast as `count_ones` on
/// processors without an instruction that counts bits.
#[inline]
pub(crate) fn count(mut places: Places) -> u32 {
    let mut n = 0;
    while places != 0 {
        places &= places - 1;
        n += 1;
    }
    n
}

/// Whether the set `places` has fewer places than the set `others`.
#[inline]
fn are_fewer(mut places: Places, mut others: Places) -> bool {
    while places != 0 && others != 0 {
        places &= places - 1;
        others &= others - 1;
    }
    others != 0
}

/// Plans a write of the data places `written`, at least one, of a stripe with `data` data places and `parity` parity
/// places. At most `parity` places are `missing`.
pub(crate) fn plan_write(data: usize, parity: usize, written: Places, missing: Places) -> Plan {
    let all_data = bits(data);
    let all_parity = bits(parity) << data;
    let there = !missing;
    let writes = (written | all_parity) & there;
    let rest = all_data & !written;
    let plan = |method, reads| Plan {
        method,
        reads,
        writes,
    };
    if rest == 0 {
        return plan(Method::Write, 0);
    }
    if all_parity & there == 0 {
        return plan(Method::WithoutParity, 0);
    }
    let old = (written | all_parity) & there;
    let modify = (written & missing == 0).then_some(old);
    let reconstruct = (rest & missing == 0).then_some(rest);
    match (modify, reconstruct) {
        (Some(old), Some(rest)) if are_fewer(rest, old) => plan(Method::ReconstructWrite, rest),
        (Some(old), _) => plan(Method::ReadModifyWrite, old),
        (None, Some(rest)) => plan(Method::ReconstructWrite, rest),
        (None, None) => plan(Method::Recover, sources(data, parity, missing)),
    }
}

/// Returns the places to read in order to reconstruct the data at the missing data places: all other data places, and
/// one parity place per missing data place.
pub(crate) fn sources(data: usize, parity: usize, missing: Places) -> Places {
    let all_data = bits(data);
    let mut wanted = count(missing & all_data);
    let mut reads = all_data & !missing;
    for j in 0..parity {
        let place = 1 << (data + j);
        if wanted > 0 && missing & place == 0 {
            reads |= place;
            wanted -= 1;
        }
    }
    debug_assert_eq!(wanted, 0, "more is missing than parity makes up for");
    reads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_compared_by_their_sizes() {
        for places in 0..64_u64 {
            for others in 0..64_u64 {
                let fewer = places.count_ones() < others.count_ones();
                assert_eq!(are_fewer(places, others), fewer);
            }
        }
    }

    fn counts(data: usize, parity: usize, k: usize) -> (Method, u32, u32) {
        let plan = plan_write(data, parity, bits(k), 0);
        (
            plan.method,
            plan.reads.count_ones(),
            plan.writes.count_ones(),
        )
    }

    /// Numbers of reads and writes of writes with parity. RMW is read-modify-write, RCW is reconstruct-write, and k is
    /// the number of data places written.
    ///
    /// - RAID-5, 4+1: k = 1: RMW, 2 reads and 2 writes. k = 2: RCW, 2 reads and 3 writes. k = 3: RCW, 1 read and 4
    ///   writes. k = 4: no reads, 5 writes.
    /// - RAID-6, 4+2: k = 1: RMW, 3 reads and 3 writes. k = 2: RCW, 2 reads and 4 writes.
    #[test]
    fn vector_raid_1() {
        use Method::*;
        assert_eq!(counts(4, 1, 1), (ReadModifyWrite, 2, 2));
        assert_eq!(counts(4, 1, 2), (ReconstructWrite, 2, 3));
        assert_eq!(counts(4, 1, 3), (ReconstructWrite, 1, 4));
        assert_eq!(counts(4, 1, 4), (Write, 0, 5));
        assert_eq!(counts(4, 2, 1), (ReadModifyWrite, 3, 3));
        assert_eq!(counts(4, 2, 2), (ReconstructWrite, 2, 4));
    }

    /// Reads and writes of the reference simulator (DiskSim, disksim_redun.c) with 5 disks. A write of 1 unit takes 2
    /// reads, then 2 writes. A write of 2 units takes 2 reads, then 3 writes. A write of 4 units takes 5 writes.
    #[test]
    fn the_reference_s_writes_of_one_two_and_four_units() {
        assert_eq!(counts(4, 1, 1).1, 2);
        assert_eq!((counts(4, 1, 2).1, counts(4, 1, 2).2), (2, 3));
        assert_eq!((counts(4, 1, 4).1, counts(4, 1, 4).2), (0, 5));
    }

    /// For every permitted set of missing places, the planned reads suffice to compute the new parity. No missing place
    /// is read or written.
    #[test]
    fn plans_do_without_what_is_missing() {
        for (data, parity) in [(1, 1), (3, 1), (4, 1), (2, 2), (4, 2), (6, 2)] {
            let all = bits(data + parity);
            for missing in (0..=all).filter(|m| m.count_ones() <= parity as u32) {
                for written in 1..=bits(data) {
                    let plan = plan_write(data, parity, written, missing);
                    assert_eq!((plan.reads | plan.writes) & missing, 0);
                    let parities = !missing & all & !bits(data);
                    assert_eq!(plan.writes, (written & !missing) | parities);
                    let rest = bits(data) & !written;
                    match plan.method {
                        Method::WithoutParity => {
                            assert!(parities == 0 && rest != 0 && plan.reads == 0);
                        }
                        Method::Write => assert_eq!(rest, 0),
                        Method::ReadModifyWrite => assert_eq!(plan.reads, written | parities),
                        Method::ReconstructWrite => assert_eq!(plan.reads, rest),
                        Method::Recover => {
                            let lost = (missing & bits(data)).count_ones();
                            let read_parity = (plan.reads & parities).count_ones();
                            assert_eq!(plan.reads & bits(data), bits(data) & !missing);
                            assert_eq!(read_parity, lost);
                        }
                    }
                }
            }
        }
    }
}
