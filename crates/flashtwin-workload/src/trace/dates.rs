//! Converts dates and times of day in a text column to picoseconds.

const SECOND_PS: u128 = 1_000_000_000_000;
const DAY_PS: u128 = 86_400 * SECOND_PS;

/// Description of the accepted texts, for messages.
pub(crate) const FORM: &str =
    "a date and time such as 2024-05-31 13:05:00.25 or 2024-05-31T13:05:00Z, or a time of day such as 13:05:00.25";

/// Converts the texts of one column to absolute times. If times of day have no date, a time that is at least half a day
/// earlier than the latest one belongs to the next day.
#[derive(Default)]
pub(crate) struct Clock {
    /// Days since the first time of day.
    day: u128,
    latest: u128,
}

impl Clock {
    /// Converts a date with a time, or a time of day, to picoseconds. If `text` is only a date, the time of day is in
    /// `next`, the text of the following column.
    pub fn read(&mut self, text: &[u8], next: &[u8]) -> Option<u128> {
        if is_date(text) {
            return Some(date(text)? + time_of_day(next)?);
        }
        match text.get(10) {
            Some(b'T' | b't' | b' ' | b'_') if is_date(&text[..10]) => {
                zoned(date(&text[..10])?, &text[11..])
            }
            _ => Some(self.across_midnight(time_of_day(text)?)),
        }
    }

    fn across_midnight(&mut self, time: u128) -> u128 {
        let mut at = self.day * DAY_PS + time;
        if at + DAY_PS / 2 <= self.latest {
            self.day += 1;
            at += DAY_PS;
        } else if self.day > 0 && at > self.latest + DAY_PS / 2 {
            // This request is out of order: it belongs to the day before midnight.
            at -= DAY_PS;
        }
        self.latest = self.latest.max(at);
        at
    }
}

/// Whether the text has the form of a date without a time.
pub(crate) fn is_date(text: &[u8]) -> bool {
    let [y @ .., s, _, _, t, _, _] = text else {
        return false;
    };
    y.len() == 4 && s == t && matches!(s, b'-' | b'/')
}

/// Returns the value of a text that consists only of digits.
fn digits(text: &[u8]) -> Option<u32> {
    let all = (1..=9).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok()?.parse().ok().filter(|_| all)
}

/// Returns the start of a day given as `2024-05-31`, in picoseconds since 1970.
fn date(text: &[u8]) -> Option<u128> {
    let (year, month, day) = (
        digits(&text[..4])?,
        digits(&text[5..7])?,
        digits(&text[8..])?,
    );
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month| match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 31,
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=days_of(month)).contains(&day) {
        return None;
    }
    let leaps = |year: u32| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + (1..month).map(days_of).sum::<u32>()
        + day
        - 1;
    Some(u128::from(days) * DAY_PS)
}

/// Converts a time of day such as `13:05:00.25` to picoseconds. Digits below one picosecond are ignored.
fn time_of_day(text: &[u8]) -> Option<u128> {
    let mut parts = text.splitn(3, |b| *b == b':');
    let (hour, minute, rest) = (
        digits(parts.next()?)?,
        digits(parts.next()?)?,
        parts.next()?,
    );
    let end = rest.iter().position(|b| matches!(b, b'.' | b','));
    let second = digits(&rest[..end.unwrap_or(rest.len())])?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut ps = u128::from(hour * 3600 + minute * 60 + second) * SECOND_PS;
    if let Some(end) = end {
        let fraction = &rest[end + 1..];
        if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut digit_ps = SECOND_PS / 10;
        for b in fraction {
            ps += u128::from(b - b'0') * digit_ps;
            digit_ps /= 10;
        }
    }
    Some(ps)
}

/// Converts a time of day, which may end in a zone (`Z`, `+02:00`, `-0500`), to UTC. `midnight` is the start of its
/// day.
fn zoned(midnight: u128, text: &[u8]) -> Option<u128> {
    if let Some(time) = text.strip_suffix(b"Z").or(text.strip_suffix(b"z")) {
        return Some(midnight + time_of_day(time)?);
    }
    let Some(at) = text.iter().position(|b| matches!(b, b'+' | b'-')) else {
        return Some(midnight + time_of_day(text)?);
    };
    let local = midnight + time_of_day(text[..at].trim_ascii_end())?;
    let (hours, minutes) = match text[at + 1..] {
        [a, b] => ([a, b], [b'0'; 2]),
        [a, b, c, d] | [a, b, b':', c, d] => ([a, b], [c, d]),
        _ => return None,
    };
    let seconds = digits(&hours)? * 3600 + digits(&minutes)? * 60;
    let offset = u128::from(seconds) * SECOND_PS;
    if text[at] == b'+' {
        local.checked_sub(offset)
    } else {
        Some(local + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<f64> {
        let ps = Clock::default().read(text.as_bytes(), b"")?;
        Some(ps as f64 / 1e12)
    }

    #[test]
    fn dates_count_from_1970_in_utc() {
        // From `date -u -d ... +%s`.
        for (text, expected) in [
            ("1970-01-01 00:00:00", 0.0),
            ("2000-02-29T12:00:00Z", 951_825_600.0),
            ("2000/03/01 00:00:00", 951_868_800.0),
            ("2024-05-31 13:05:00.25", 1_717_160_700.25),
            ("2024-05-31T13:05:00,250000000+02:00", 1_717_153_500.25),
            ("2024-05-31 13:05:00.25-0530", 1_717_180_500.25),
            ("2100-03-01 00:00:00", 4_107_542_400.0),
            ("13:05:00.5", 47_100.5),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in [
            "2023-02-29 00:00:00",
            "2024-13-01 00:00:00",
            "2024-05-31",
            "31.05.2024 13:05:00",
            "1969-12-31 00:00:00",
            "2024-05-31 24:00:00",
            "2024-05-31 10:00",
            "13:05:00.",
            "1970-01-01T00:00:00+01:00",
            "2024-05-31 13:05:00+1",
            "+1:05:00",
            "12.5",
            "",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
        let split = Clock::default().read(b"2024-05-31", b"13:05:00.25");
        assert_eq!(split, Some(1_717_160_700_250_000_000_000));
    }

    #[test]
    fn times_of_day_continue_after_midnight() {
        let mut clock = Clock::default();
        let mut at = |text: &[u8]| clock.read(text, b"").unwrap() / SECOND_PS;
        assert_eq!(at(b"23:59:59"), 86_399);
        assert_eq!(at(b"00:00:01"), 86_401);
        assert_eq!(at(b"23:59:58"), 86_398, "late, of the day before");
        assert_eq!(at(b"12:00:00"), 129_600);
        assert_eq!(at(b"00:00:00"), 172_800);
    }
}
