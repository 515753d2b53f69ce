//! Splits lines into fields, and converts numbers in fields to whole units.

/// Splits a line into fields. Quotes around a field are removed. Separators within quotes belong to the field.
pub(crate) fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let line = if separator == b' ' {
            line.trim_ascii_start()
        } else {
            line
        };
        if separator == b' ' && line.is_empty() {
            return None;
        }
        let mut quoted = false;
        let end = line
            .iter()
            .position(|&b| {
                quoted ^= b == b'"';
                !quoted && (b == separator || separator == b' ' && b == b'\t')
            })
            .unwrap_or(line.len());
        rest = line.get(end + 1..);
        let field = line[..end].trim_ascii();
        let bare = field
            .strip_prefix(b"\"")
            .and_then(|f| f.strip_suffix(b"\""));
        Some(bare.unwrap_or(field))
    })
}

/// Parses a non-negative decimal number, such as `4096`, `4096.0` or `1.5e-05`. Returns its digits as an integer, and a
/// power of ten.
fn decimal(text: &[u8]) -> Option<(u128, i32)> {
    const DIGITS_MAX: u32 = 37;
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => {
            let exponent = std::str::from_utf8(&text[at + 1..]).ok()?;
            (&text[..at], exponent.parse::<i16>().ok()?)
        }
        None => (text, 0),
    };
    let (mut value, mut power) = (0u128, i32::from(exponent));
    let (mut digits, mut kept, mut fraction) = (0, 0, false);
    for &b in mantissa {
        match b {
            b'.' if !fraction => fraction = true,
            b'0'..=b'9' => {
                digits += 1;
                power -= i32::from(fraction);
                if kept < DIGITS_MAX {
                    value = value * 10 + u128::from(b - b'0');
                    kept += u32::from(value > 0);
                } else {
                    power += 1;
                }
            }
            _ => return None,
        }
    }
    (digits > 0).then_some((value, power))
}

/// Parses a non-negative number. Returns its digits as an integer, and a power of ten. The digits are hexadecimal if
/// `hex` is true or `0x` precedes them. Otherwise they are decimal.
pub(super) fn number(text: &[u8], hex: bool) -> Option<(u128, i32)> {
    const DIGITS_MAX: usize = 16;
    let prefixed = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X"));
    let digits = match prefixed {
        Some(digits) => digits,
        None if hex => text,
        None => return decimal(text),
    };
    let fits = (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| fits)?;
    Some((u128::from_str_radix(text, 16).ok()?, 0))
}

/// Returns the value of a whole number in any notation, such as `1`, `1.0` or `0x1`.
pub(crate) fn whole_number(text: &[u8]) -> Option<u128> {
    let (value, whole) = scaled(number(text, false)?, 1)?;
    whole.then_some(value)
}

/// Returns `number * unit`, rounded down to a whole number, and whether the product was whole already. `None` if the
/// result is too large.
pub(super) fn scaled((value, power): (u128, i32), unit: u64) -> Option<(u128, bool)> {
    if value == 0 {
        return Some((0, true));
    }
    if power >= 0 {
        let scale = 10u128.checked_pow(power.unsigned_abs())?;
        let whole = value.checked_mul(scale)?.checked_mul(u128::from(unit))?;
        return Some((whole, true));
    }
    let Some(scale) = 10u128.checked_pow(power.unsigned_abs()) else {
        return Some((0, false));
    };
    // The whole part and the remainder are multiplied separately, because one product might overflow.
    let (whole, rest) = (value / scale, value % scale);
    let whole = whole.checked_mul(u128::from(unit))?;
    let (part, exact) = match rest.checked_mul(u128::from(unit)) {
        Some(product) => (product / scale, product % scale == 0),
        None => (rest / (scale / u128::from(unit).max(1)).max(1), false),
    };
    Some((whole.checked_add(part)?, exact))
}

pub(super) fn separator_of(line: &[u8]) -> u8 {
    [b',', b';', b'\t']
        .into_iter()
        .find(|b| line.contains(b))
        .unwrap_or(b' ')
}
