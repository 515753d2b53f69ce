//! Formats numbers for the terminal: four digits and a unit.

/// Formats a time given in microseconds with four digits and a suitable unit.
pub(super) fn time(us: f64) -> String {
    let (value, unit) = match us {
        _ if us < 0.9995 => (us * 1e3, "ns"),
        _ if us < 999.5 => (us, "us"),
        _ if us < 999_500.0 => (us * 1e-3, "ms"),
        _ => (us * 1e-6, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Formats a number with four significant digits. Digits before the decimal point are never
/// rounded.
pub(super) fn digits(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".into(),
        _ if value < 9.9995 => format!("{value:.3}"),
        _ if value < 99.995 => format!("{value:.2}"),
        _ if value < 999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Formats a value; a dash if there is none.
pub(super) fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".into(), digits)
}

/// Formats a whole number with separated thousands.
pub(super) fn grouped(n: u64) -> String {
    let plain = n.to_string();
    let groups = plain.as_bytes().rchunks(3).rev();
    let texts: Vec<String> = groups
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    texts.join(" ")
}

/// Formats a number of bytes in a suitable binary unit.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        digits(value)
    };
    format!("{text} {}", units[unit])
}

/// Formats the mean `sum / count` with one digit after the point.
pub(super) fn ratio_text(sum: u64, count: u64) -> String {
    format!("{:.1}", sum as f64 / count.max(1) as f64)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_usual_unit() {
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(0.2384), "238.4 ns");
        assert_eq!(time(330.5), "330.5 us");
        assert_eq!(time(999.6), "1.000 ms");
        assert_eq!(time(12_345_678.0), "12.35 s");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(12), "12");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(4_310_000_000), "4.014 GiB");
        assert_eq!(percent(0.10665), "10.66 %");
    }
}
