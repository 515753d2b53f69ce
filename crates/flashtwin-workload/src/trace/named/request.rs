//! Converts a line to a request.

use flashtwin::{Op, PlacementId};

use super::super::collector::Raw;
use super::super::cursor::Bad;
use super::super::dates::{self, Clock};
use super::super::lines::Line;
use super::super::words::{word, Action};
use super::numbers::{number, scaled};
use super::{Column, Columns, Ops, Times, COLUMNS_MAX};

pub(super) type Fields<'a> = [&'a [u8]; COLUMNS_MAX];

/// Shift of columns in one line: the columns from index `place` on are `more` fields further to the
/// right.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    pub place: usize,
    pub more: usize,
}

impl Shift {
    pub const NONE: Self = Shift {
        place: usize::MAX,
        more: 0,
    };

    #[inline]
    pub fn index(self, column: usize) -> usize {
        let more = if column >= self.place { self.more } else { 0 };
        (column + more).min(COLUMNS_MAX - 1)
    }

    pub fn bad(self, column: &'static str, index: usize, expected: &'static str) -> Bad {
        Bad {
            column,
            index: self.index(index) as u8 + 1,
            expected,
        }
    }
}

/// Converts the number in a field to a whole number, given that one unit of the column is `unit`.
/// Also returns whether the product was whole before rounding.
fn value(fields: &Fields<'_>, column: &Column, unit: u64, shift: Shift) -> Option<(u128, bool)> {
    scaled(number(fields[shift.index(column.index)], column.hex)?, unit)
}

const WORD: &str =
    "a word such as R, W, read, write, trim or flush; if it is a code, name codes, like \
                    op=COLUMN:read=1 or op=COLUMN:write=2a|8a:trim=42";

/// Permitted values in a column of placement ids. Messages show this text.
pub(crate) const PLACEMENT: &str =
    "a placement id from 0 to 65534, decimal or hexadecimal after 0x, or nothing for none";

/// Reads a placement id; an empty field means no id.
pub(crate) fn placement_id(text: &[u8], hex: bool) -> Option<PlacementId> {
    if text.is_empty() {
        return Some(PlacementId::NONE);
    }
    let (id, whole) = scaled(number(text, hex)?, 1)?;
    PlacementId::new(u16::try_from(id).ok().filter(|_| whole)?)
}

impl Columns {
    /// Whether the fields can be a request.
    pub(super) fn fits(&self, fields: &Fields<'_>, shift: Shift) -> bool {
        let is_number = |column: &Column| value(fields, column, 1, shift).is_some();
        let timed = match &self.times {
            Times::None => true,
            Times::At(column) | Times::Gaps(column, _) => is_number(column),
            Times::Dates(index, _) => {
                let at = shift.index(*index);
                let next = fields.get(at + 1).copied().unwrap_or(b"");
                Clock::default().read(fields[at], next).is_some()
            }
        };
        let known = match &self.ops {
            Ops::Reads => true,
            Ops::Words(index) => word(fields[shift.index(*index)]).is_some(),
            Ops::Codes(index, codes) => codes.knows(fields[shift.index(*index)]),
        };
        let is_id =
            |column: &Column| placement_id(fields[shift.index(column.index)], column.hex).is_some();
        timed
            && known
            && is_number(&self.offset)
            && self.size.as_ref().is_none_or(is_number)
            && self.placement.as_ref().is_none_or(is_id)
    }

    pub(super) fn request<'a>(
        &mut self,
        fields: &Fields<'a>,
        shift: Shift,
    ) -> Result<Line<'a>, Bad> {
        const NUMBER: &str =
            "a non-negative number (for dates and times of day give time=COLUMN:datetime)";
        let span = |column: &Column| {
            value(fields, column, column.unit, shift)
                .map(|(ps, _)| ps)
                .filter(|&ps| ps < 1 << 100)
                .ok_or(shift.bad("time", column.index, NUMBER))
        };
        let time = match &mut self.times {
            Times::None => 0,
            Times::At(column) => span(column)?,
            Times::Gaps(column, sum) => {
                *sum = sum.saturating_add(span(column)?).min(1 << 100);
                *sum
            }
            Times::Dates(index, clock) => {
                let at = shift.index(*index);
                let next = fields.get(at + 1).copied().unwrap_or(b"");
                clock
                    .read(fields[at], next)
                    .ok_or(shift.bad("time", *index, dates::FORM))?
            }
        };
        let bytes = |column: &Column, name| {
            value(fields, column, 1, shift)
                .filter(|(_, exact)| *exact)
                .and_then(|(number, _)| u64::try_from(number).ok()?.checked_mul(column.unit))
                .ok_or(shift.bad(name, column.index, "a whole number, below 2^62 bytes"))
        };
        let action = match &mut self.ops {
            Ops::Reads => Action::of(Op::Read),
            Ops::Words(index) => {
                word(fields[shift.index(*index)]).ok_or(shift.bad("op", *index, WORD))?
            }
            Ops::Codes(index, codes) => codes.action(fields[shift.index(*index)]).ok_or(shift.bad(
                "op",
                *index,
                "a code that is named, like op=COLUMN:write=2a|8a:trim=42:skip=0, or a word such as R or write",
            ))?,
        };
        let Some(op) = action.op else {
            return Ok(Line::Other);
        };
        let (offset, bytes) = match (op, &self.size) {
            (Op::Flush, _) => (0, 0),
            (_, Some(size)) => (bytes(&self.offset, "offset")?, bytes(size, "size")?),
            (_, None) => (bytes(&self.offset, "offset")?, self.offset.unit),
        };
        Ok(Line::Request(Raw {
            time,
            volume: self.volume.map_or(&b""[..], |i| fields[shift.index(i)]),
            op,
            offset,
            bytes,
            fua: action.fua,
            preflush: action.preflush,
            placement: match &self.placement {
                None => PlacementId::NONE,
                Some(column) => placement_id(fields[shift.index(column.index)], column.hex)
                    .ok_or(shift.bad("placement", column.index, PLACEMENT))?,
            },
        }))
    }
}
