//! Converts UTF-16 text with a byte order mark to UTF-8. Programs on Windows write such text.

use std::io::{self, Read};

/// Bytes that show whether a text is UTF-16.
pub(crate) const LOOKED_AT_BYTES: usize = 18;
const CHUNK_BYTES: usize = 64 << 10;

/// Returns the byte order of a UTF-16 text from its first bytes: `Some(true)` if the high byte is first. Returns `None`
/// if the text is not UTF-16, or if its first characters are not ASCII.
pub(crate) fn big_endian(head: &[u8]) -> Option<bool> {
    let (big, rest) = match head {
        [0xff, 0xfe, rest @ ..] => (false, rest),
        [0xfe, 0xff, rest @ ..] => (true, rest),
        _ => return None,
    };
    let mut units = rest
        .chunks_exact(2)
        .map(|pair| unit(big, [pair[0], pair[1]]));
    let text = |c: u16| matches!(c, 0x20..=0x7e | 0x09 | 0x0a | 0x0d);
    (rest.len() >= 2 && units.all(text)).then_some(big)
}

fn unit(big: bool, pair: [u8; 2]) -> u16 {
    if big {
        u16::from_be_bytes(pair)
    } else {
        u16::from_le_bytes(pair)
    }
}

/// A reader that converts UTF-16 to UTF-8. Incomplete surrogate pairs become the replacement character.
pub(crate) struct Utf16<R> {
    inner: R,
    big: bool,
    /// Bytes that were read but not converted yet.
    raw: Vec<u8>,
    text: Vec<u8>,
    at: usize,
}

impl<R: Read> Utf16<R> {
    pub fn new(inner: R, big: bool) -> Self {
        Utf16 {
            inner,
            big,
            raw: Vec::new(),
            text: Vec::new(),
            at: 0,
        }
    }

    /// Converts the next bytes; returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let kept = self.raw.len();
        self.raw.resize(kept + CHUNK_BYTES, 0);
        let read = self.inner.read(&mut self.raw[kept..]);
        self.raw.truncate(kept + *read.as_ref().unwrap_or(&0));
        let ended = read? == 0;
        let pairs = self
            .raw
            .chunks_exact(2)
            .map(|p| unit(self.big, [p[0], p[1]]));
        let mut units: Vec<u16> = pairs.collect();
        // If a character consists of two UTF-16 units, a read may end between them.
        let cut = matches!(units.last(), Some(0xd800..=0xdbff)) && !ended;
        if cut {
            units.pop();
        }
        let used = if ended {
            self.raw.len()
        } else {
            units.len() * 2
        };
        self.raw.drain(..used);
        self.text.clear();
        self.at = 0;
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(!ended)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            let more = self.fill()?;
            if !more && self.text.is_empty() {
                return Ok(0);
            }
        }
        let n = buf.len().min(self.text.len() - self.at);
        buf[..n].copy_from_slice(&self.text[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns one byte at a time.
    struct Dripping<'a>(&'a [u8]);

    impl Read for Dripping<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn characters_may_be_cut_anywhere() {
        let text = "ts,name\n1,\u{e9}\u{1f600}\n";
        for big in [false, true] {
            let bytes: Vec<u8> = text
                .encode_utf16()
                .flat_map(|c| {
                    if big {
                        c.to_be_bytes()
                    } else {
                        c.to_le_bytes()
                    }
                })
                .collect();
            let mut read = String::new();
            Utf16::new(Dripping(&bytes), big)
                .read_to_string(&mut read)
                .unwrap();
            assert_eq!(read, text);
        }
        let mut broken = String::new();
        Utf16::new(&[0x41, 0, 0, 0xd8, 0x42, 0, 7][..], false)
            .read_to_string(&mut broken)
            .unwrap();
        assert_eq!(
            broken, "A\u{fffd}B",
            "half a character, and half a unit at the end"
        );
    }

    #[test]
    fn only_text_after_the_mark_is_utf16() {
        assert_eq!(big_endian(b"\xff\xfet\0s\0"), Some(false));
        assert_eq!(big_endian(b"\xfe\xff\0t\0s"), Some(true));
        assert_eq!(big_endian(b"\xff\xfe\0\0\x10\0\0\0"), None, "a number");
        assert_eq!(big_endian(b"\xff\xfe"), None);
        assert_eq!(big_endian(b"ts,l"), None);
    }
}
