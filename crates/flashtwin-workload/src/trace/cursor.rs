//! Reads the fields of a line of bytes: integers, exact decimals and words, without `String` and floating point.

/// Error: the value in a column is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// Name of the column.
    pub column: &'static str,
    /// Number of the column in the line, counted from 1; 0 if the line as a whole is wrong.
    pub index: u8,
    /// The values that would be valid.
    pub expected: &'static str,
}

/// Reads the fields of a line one after the other. The separator `SEP` is `b','`, or `b' '` for any number of blanks.
pub(crate) struct Cursor<'a, const SEP: u8> {
    line: &'a [u8],
    at: usize,
    index: u8,
}

const fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

impl<'a, const SEP: u8> Cursor<'a, SEP> {
    /// Creates a cursor at the first byte of `line`, which must not contain a line end.
    pub fn new(line: &'a [u8]) -> Self {
        Cursor {
            line,
            at: 0,
            index: 0,
        }
    }

    /// Returns the error for the field read last.
    #[cold]
    pub fn bad<T>(&self, column: &'static str, expected: &'static str) -> Result<T, Bad> {
        Err(Bad {
            column,
            index: self.index,
            expected,
        })
    }

    #[inline(always)]
    fn begin(&mut self) {
        self.index = self.index.saturating_add(1);
        self.skip_blanks();
    }

    fn skip_blanks(&mut self) {
        while self.at < self.line.len() && is_blank(self.line[self.at]) {
            self.at += 1;
        }
    }

    /// Skips the separator after a value. Returns false if neither a separator nor the end of the line follows the
    /// value.
    #[inline(always)]
    fn finish(&mut self) -> bool {
        match self.line.get(self.at) {
            None => true,
            Some(&b) if b == SEP => {
                self.at += 1;
                true
            }
            Some(&b) if is_blank(b) => {
                self.skip_blanks();
                if SEP == b' ' {
                    return true;
                }
                match self.line.get(self.at) {
                    None => true,
                    Some(&b) if b == SEP => {
                        self.at += 1;
                        true
                    }
                    Some(_) => false,
                }
            }
            Some(_) => false,
        }
    }

    /// Reads digits as a number; `None` if there are no digits or the number exceeds `u64`. Processes eight bytes at a
    /// time. A loop over single digits would be slow: a trace consists mostly of numbers, and the processor cannot
    /// predict their lengths.
    #[inline(always)]
    fn digits(&mut self) -> Option<u64> {
        let rest = &self.line[self.at..];
        let (mut value, mut n) = (0u64, 0);
        loop {
            let (more, count) = match rest.get(n..n + 8).and_then(|b| b.try_into().ok()) {
                Some(eight) => leading_digits(u64::from_le_bytes(eight)),
                None => leading_digits(self.last_bytes(rest.len() - n)),
            };
            value = value.wrapping_mul(POWERS[count]).wrapping_add(more);
            n += count;
            if count < 8 {
                break;
            }
        }
        self.at += n;
        match n {
            0 => None,
            1..=19 => Some(value),
            // A number with more digits may exceed `u64`. The slower parser checks this.
            _ => std::str::from_utf8(&rest[..n]).ok()?.parse().ok(),
        }
    }

    /// Returns the last `left` bytes of the line (fewer than 8) as the low bytes of a word. The other bytes are zero.
    #[inline(always)]
    fn last_bytes(&self, left: usize) -> u64 {
        match self.line.last_chunk::<8>() {
            Some(_) if left == 0 => 0,
            Some(eight) => u64::from_le_bytes(*eight) >> (64 - 8 * left),
            None => {
                let last = &self.line[self.line.len() - left..];
                last.iter()
                    .rev()
                    .fold(0, |word, &b| word << 8 | u64::from(b))
            }
        }
    }

    /// Reads a non-negative integer.
    #[inline(always)]
    pub fn uint(&mut self, column: &'static str, expected: &'static str) -> Result<u64, Bad> {
        self.begin();
        match self.digits() {
            Some(value) if self.finish() => Ok(value),
            _ => self.bad(column, expected),
        }
    }

    /// Reads a non-negative decimal number exactly and converts it to picoseconds. `unit` is the number of picoseconds
    /// in one unit of the column. Digits below one picosecond are ignored.
    #[inline(always)]
    pub fn time(
        &mut self,
        unit: u64,
        column: &'static str,
        expected: &'static str,
    ) -> Result<u128, Bad> {
        self.begin();
        let Some(whole) = self.digits() else {
            return self.bad(column, expected);
        };
        let mut ps = u128::from(whole) * u128::from(unit);
        if self.line.get(self.at) == Some(&b'.') {
            self.at += 1;
            let mut digit_ps = u128::from(unit);
            // The fraction is a numerator and a denominator, and the numerator is multiplied by the unit. Therefore
            // long fractions are exact, also with units that are not powers of ten.
            let (mut numerator, mut denominator) = (0u128, 1u128);
            while let Some(digit) = self.line.get(self.at).map(|b| b.wrapping_sub(b'0')) {
                if digit > 9 {
                    break;
                }
                if digit_ps > 0 {
                    numerator = numerator * 10 + u128::from(digit);
                    denominator *= 10;
                    digit_ps /= 10;
                }
                self.at += 1;
            }
            ps += numerator * u128::from(unit) / denominator;
        }
        if self.finish() {
            Ok(ps)
        } else {
            self.bad(column, expected)
        }
    }

    /// Returns the bytes up to the next separator without surrounding blanks. They may be empty.
    #[inline(always)]
    pub fn word(&mut self) -> &'a [u8] {
        self.begin();
        let from = self.at;
        while self.at < self.line.len() {
            let b = self.line[self.at];
            if b == SEP || (SEP == b' ' && is_blank(b)) {
                break;
            }
            self.at += 1;
        }
        let word = self.line[from..self.at].trim_ascii_end();
        self.finish();
        word
    }

    /// Reads a number that is a name (of a disk, a LUN or a volume), and returns its text.
    #[inline(always)]
    pub fn name(&mut self, column: &'static str, expected: &'static str) -> Result<&'a [u8], Bad> {
        const DIGITS_MAX: usize = 20;
        let word = self.word();
        let fits = (1..=DIGITS_MAX).contains(&word.len()) && word.iter().all(u8::is_ascii_digit);
        if fits {
            Ok(word)
        } else {
            self.bad(column, expected)
        }
    }

    /// Returns the offset of the next field from the start of the line, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the part of the line from byte `from` to the end of the field read last, without the separator after it.
    pub fn since(&self, from: usize) -> &'a [u8] {
        let end = if self.at < self.line.len() {
            self.at - 1
        } else {
            self.at
        };
        let part = &self.line[from.min(end)..end];
        part.strip_suffix(&[SEP]).unwrap_or(part).trim_ascii()
    }

    /// Whether only blanks are left.
    pub fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.at >= self.line.len()
    }

    /// Returns an error unless only blanks are left.
    #[inline(always)]
    pub fn end(&mut self, expected: &'static str) -> Result<(), Bad> {
        if self.at >= self.line.len() || self.at_end() {
            return Ok(());
        }
        self.index = self.index.saturating_add(1);
        self.bad("end of line", expected)
    }
}

const POWERS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Returns the value of the digits at the start of eight bytes, and their number.
#[inline(always)]
fn leading_digits(bytes: u64) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let v = bytes ^ (EACH * 0x30);
    // Marks the bytes that are not digits. Adding 0x76 to a byte sets its high bit if the byte exceeds 9. No sum
    // carries into the next byte.
    let others = (((v & (EACH * 0x7f)) + EACH * 0x76) | v) & (EACH * 0x80);
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // The shift replaces the missing leading digits by zeros. Then digits are combined to pairs, pairs to groups of
    // four, and these to all eight.
    let v = v << (64 - 8 * count);
    let v = (v.wrapping_mul(10).wrapping_add(v >> 8)) & 0x00ff_00ff_00ff_00ff;
    let v = (v.wrapping_mul(100).wrapping_add(v >> 16)) & 0x0000_ffff_0000_ffff;
    (
        v.wrapping_mul(10_000).wrapping_add(v >> 32) & 0xffff_ffff,
        count,
    )
}

/// Returns the text of the field with the number `index` (from 1) in a line. Messages quote it.
pub(crate) fn field(line: &[u8], separator: u8, index: u8) -> Option<&[u8]> {
    let wanted = usize::from(index).checked_sub(1)?;
    if separator == b' ' {
        line.split(|&b| is_blank(b))
            .filter(|f| !f.is_empty())
            .nth(wanted)
    } else {
        line.split(|&b| b == separator)
            .nth(wanted)
            .map(<[u8]>::trim_ascii)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_to_the_picosecond() {
        let time = |text: &str, unit| Cursor::<b','>::new(text.as_bytes()).time(unit, "t", "e");
        assert_eq!(time("0.1", 1_000_000_000_000), Ok(100_000_000_000));
        assert_eq!(
            time("1456095145.133076000", 1_000_000_000_000),
            Ok(1_456_095_145_133_076_000_000)
        );
        assert_eq!(time("5265.313", 1_000_000_000), Ok(5_265_313_000_000));
        assert_eq!(
            time("0.0000009", 1_000_000),
            Ok(0),
            "finer than a picosecond is cut off"
        );
        assert_eq!(time("3.", 1_000), Ok(3_000));
        assert_eq!(
            time("128166481075232275", 100_000),
            Ok(12_816_648_107_523_227_500_000)
        );
        assert!(time("-1", 1).is_err());
        assert!(time("1e3", 1).is_err());
        assert!(time(".5", 1).is_err());
        assert!(time("99999999999999999999", 1).is_err());
    }

    #[test]
    fn integers_stop_at_the_first_non_digit() {
        let uint = |text: &str| Cursor::<b','>::new(text.as_bytes()).uint("n", "e").ok();
        assert_eq!(uint("18446744073709551615"), Some(u64::MAX));
        assert_eq!(uint("18446744073709551616"), None);
        assert_eq!(uint(" 42 ,7"), Some(42));
        assert_eq!(
            uint("00000000000000000000000000000000000000000000000042"),
            Some(42)
        );
        assert_eq!(
            uint("1234567890123456789,"),
            Some(1_234_567_890_123_456_789)
        );
        assert_eq!(uint("12345678,"), Some(12_345_678));
        assert_eq!(uint("1234567:,"), None, "the byte after 9 is no digit");
        assert_eq!(uint("1234567/,"), None, "nor the byte before 0");
        assert_eq!(uint("4 2"), None);
        assert_eq!(uint("42x"), None);
        assert_eq!(uint(""), None);
    }

    #[test]
    fn fields_are_counted_for_messages() {
        assert_eq!(field(b"a, b ,c", b',', 2), Some(&b"b"[..]));
        assert_eq!(field(b" a  b c", b' ', 3), Some(&b"c"[..]));
        assert_eq!(field(b"a,b", b',', 3), None);
    }
}
