//! Exact decimal arithmetic on the numbers of a device file.
//!
//! A float represents the shortest decimal number from which the same float is read; this is the number in the file. It
//! is scaled with integer arithmetic, so `0.0002384` ms is exactly 238 400 ps, and 29 % of 100 blocks are 29 blocks.

/// How a fraction is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Down,
}

/// Returns `x * times / divide` as an integer. `divide` must be a power of ten, at most 1000. Returns `None` if `x` is
/// negative or not finite, or if the result does not fit.
pub(super) fn scale(x: f64, times: u64, divide: u64, rounding: Rounding) -> Option<u64> {
    if !x.is_finite() || x < 0.0 {
        return None;
    }
    let x = x.abs(); // -0.0
                     // The text has at most 17 digits. Since `times` is below 2^64, the numerator is below 10^37.
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let fraction = mantissa
        .split_once('.')
        .map_or("", |(_, fraction)| fraction);
    let fraction_len = i32::try_from(fraction.len()).ok()?;
    let digits: u128 = mantissa.replace('.', "").parse().ok()?;
    let shift = exponent - fraction_len;
    let mut numerator = digits * u128::from(times);
    let mut denominator = u128::from(divide);
    if shift >= 0 {
        let power = 10u128.checked_pow(shift.unsigned_abs())?;
        numerator = numerator.checked_mul(power)?;
    } else {
        // If the divisor does not fit, it is above 10^38. The quotient is then below one half.
        match 10u128
            .checked_pow(shift.unsigned_abs())
            .and_then(|p| denominator.checked_mul(p))
        {
            Some(d) => denominator = d,
            None => return Some(0),
        }
    }
    if rounding == Rounding::Nearest {
        numerator = numerator.checked_add(denominator / 2)?;
    }
    u64::try_from(numerator / denominator).ok()
}

/// Returns `percent` % of `count`, rounded down.
pub(super) fn percent_of(count: u64, percent: f64) -> u64 {
    scale(percent, count, 100, Rounding::Down).unwrap_or(0)
}

/// Returns `units / per_unit` as the shortest decimal number, without a point if the quotient is a whole number.
/// `per_unit` must be a power of ten.
pub(super) fn show(units: u64, per_unit: u64) -> String {
    let (whole, rest) = (units / per_unit, units % per_unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = per_unit.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_scale_exactly() {
        let ps_per_ms = 1_000_000_000;
        assert_eq!(
            scale(0.0002384, ps_per_ms, 1, Rounding::Nearest),
            Some(238_400)
        );
        assert_eq!(
            scale(0.000025, ps_per_ms, 1, Rounding::Nearest),
            Some(25_000)
        );
        assert_eq!(scale(0.8333, 1000, 1, Rounding::Nearest), Some(833));
        assert_eq!(scale(0.0005, 1000, 1, Rounding::Nearest), Some(1));
        assert_eq!(scale(0.00049, 1000, 1, Rounding::Nearest), Some(0));
        assert_eq!(scale(29.0, 100, 100, Rounding::Down), Some(29));
        assert_eq!(scale(0.29, 100, 1, Rounding::Down), Some(29));
        assert_eq!(percent_of(2048, 15.0), 307);
    }

    #[test]
    fn the_ends_of_the_range_neither_overflow_nor_panic() {
        for x in [
            f64::NAN,
            f64::INFINITY,
            -1.0,
            -f64::MIN_POSITIVE,
            f64::MAX,
            1e30,
        ] {
            assert_eq!(scale(x, u64::MAX, 1, Rounding::Nearest), None, "{x}");
        }
        for x in [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, 1e-60] {
            assert_eq!(scale(x, u64::MAX, 1000, Rounding::Nearest), Some(0), "{x}");
        }
    }

    #[test]
    fn numbers_are_shown_without_noise() {
        assert_eq!(show(25_000_000, 1_000_000), "25");
        assert_eq!(show(238_400, 1_000), "238.4");
        assert_eq!(show(1, 1_000_000), "0.000001");
    }
}
