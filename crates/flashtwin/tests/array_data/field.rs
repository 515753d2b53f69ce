//! The parity arithmetic of RAID-6, on eight bytes at a time: GF(2^8) with the polynomial 0x11d. Each page of data in a
//! stripe has a place k. P is the sum of the data of all places. Q is the sum, over all places k, of the data of the
//! place multiplied by g^k.

/// Returns each byte of `x` multiplied by the generator g.
fn twice(x: u64) -> u64 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    ((x & !HIGH) << 1) ^ (((x & HIGH) >> 7) * 0x1d)
}

/// Returns each byte of `x` multiplied by g^k.
pub fn times_power(x: u64, k: usize) -> u64 {
    (0..k).fold(x, |x, _| twice(x))
}

/// Returns each byte of `x` multiplied by `factor`.
fn times(x: u64, factor: u8) -> u64 {
    let bits = (0..8).filter(|bit| factor >> bit & 1 == 1);
    bits.fold(0, |sum, bit| sum ^ times_power(x, bit))
}

fn inverse(of: u8) -> u8 {
    let one = |&x: &u8| times(u64::from(of), x) == 1;
    (1..=255).find(one).expect("not zero")
}

/// Returns parity `which` (0: P, 1: Q) of the data of all places in a stripe.
pub fn parity(which: usize, data: &[u64]) -> u64 {
    let places = data.iter().enumerate();
    places.fold(0, |sum, (k, &x)| sum ^ times_power(x, which * k))
}

/// Computes the data of all places in a stripe. `known` has `None` for unknown data. `parities` has pairs: the number
/// of a parity (0: P, 1: Q) and its value. Returns `None` if more data are unknown than parities are given.
pub fn solve(known: &[Option<u64>], parities: &[(usize, u64)]) -> Option<Vec<u64>> {
    let zeros: Vec<u64> = known.iter().map(|x| x.unwrap_or(0)).collect();
    let unknown: Vec<usize> = (0..known.len()).filter(|&k| known[k].is_none()).collect();
    // Sum of the unknown data in each parity.
    let rest = |&(which, value): &(usize, u64)| (which, value ^ parity(which, &zeros));
    let rests: Vec<(usize, u64)> = parities.iter().map(rest).collect();
    let mut data = zeros.clone();
    match (unknown[..].as_ref(), rests[..].as_ref()) {
        ([], _) => {}
        (&[i], &[(which, rest), ..]) => {
            let power = times_power(1, which * i) as u8;
            data[i] = times(rest, inverse(power));
        }
        (&[i, j], &[(0, p), (1, q)]) => {
            let (of_i, of_j) = (times_power(1, i) as u8, times_power(1, j) as u8);
            data[i] = times(q ^ times(p, of_j), inverse(of_i ^ of_j));
            data[j] = p ^ data[i];
        }
        _ => return None,
    }
    Some(data)
}

#[test]
fn lost_values_are_recovered() {
    let data: Vec<u64> = (1..8u64).map(|k| k * 0x0123_4567_89ab_cdef).collect();
    let parities = [(0, parity(0, &data)), (1, parity(1, &data))];
    for i in 0..data.len() {
        for j in 0..data.len() {
            let left = |k: usize| (k != i && k != j).then_some(data[k]);
            let known: Vec<Option<u64>> = (0..data.len()).map(left).collect();
            assert_eq!(solve(&known, &parities).as_ref(), Some(&data));
            if i == j {
                assert_eq!(solve(&known, &parities[1..]).as_ref(), Some(&data));
            }
        }
    }
}
