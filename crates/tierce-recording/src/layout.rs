//! Where fields are: read from the texts by which the kernel describes its events.

use crate::bytes::number;
use crate::refusal::{refused, Result};

/// A field of a record or of a page's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its first byte.
    pub offset: usize,
    /// How many bytes it has.
    pub size: usize,
    /// Its number may be negative.
    pub signed: bool,
    /// It says where the text is: offset in the lower half, length in the upper one.
    pub is_place: bool,
}

impl Field {
    /// Its bytes, if the record has them.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its number.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = self.bytes(record)?;
        let number = number(bytes) as i64;
        let unused = 64 - 8 * bytes.len().min(8) as u32;
        Some(if self.signed && unused > 0 { number << unused >> unused } else { number })
    }

    /// Its text: up to a zero.
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = if self.is_place {
            let place = self.number(record)? as u64;
            let (at, length) = ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize);
            record.get(at..at + length)?
        } else {
            self.bytes(record)?
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

/// Largest record: no page has more.
const RECORD_MAX: usize = 1 << 16;

/// A description of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// The number in its records.
    pub id: u64,
    /// Its fields.
    pub fields: Vec<Field>,
    /// How it is printed.
    pub print: String,
    /// Where it is described.
    pub offset: u64,
}

impl Layout {
    /// Of a text as in `events/SYSTEM/EVENT/format`.
    pub fn parse(text: &str, offset: u64) -> Result<Layout> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let Some(name) = value("name:") else {
            return refused("event_must_have_a_name", offset, "the description of an event has no `name:`");
        };
        let Some(id) = value("ID:").and_then(|id| id.parse().ok()).filter(|id| *id <= u64::from(u16::MAX))
        else {
            let message = format!("the description of `{name}` has no `ID:`, bound 0 to {}", u16::MAX);
            return refused("event_must_have_a_number", offset, message);
        };
        let print = value("print fmt:").unwrap_or_default().to_string();
        Ok(Layout { name: name.into(), id, fields: fields(text, offset)?, print, offset })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Result<Field> {
        let found = self.fields.iter().find(|field| field.name == name);
        match found {
            Some(field) => Ok(field.clone()),
            None => refused(
                "field_must_be_described",
                self.offset,
                format!("the description of `{}` has no field `{name}`", self.name),
            ),
        }
    }
}

/// The fields of a description, in its order.
pub fn fields(text: &str, offset: u64) -> Result<Vec<Field>> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("field:"))
        .map(|line| field(line, offset))
        .collect()
}

fn field(line: &str, offset: u64) -> Result<Field> {
    let mut parts = line.split(';').map(str::trim);
    let what = parts.next().unwrap_or_default();
    let before = what.split('[').next().unwrap_or_default();
    // `__data_loc char[] name` has its brackets before the name.
    let named = if what.starts_with("__data_loc") { what } else { before };
    let name = named.trim_end().rsplit([' ', '*', ']']).next().unwrap_or_default().to_string();
    let mut value =
        |key: &str| parts.next().and_then(|part| part.strip_prefix(key)?.trim().parse::<usize>().ok());
    let (at, size, signed) = (value("offset:"), value("size:"), value("signed:"));
    match (at, size) {
        (Some(at), Some(size)) if at <= RECORD_MAX && size <= RECORD_MAX => Ok(Field {
            name,
            offset: at,
            size,
            signed: signed == Some(1),
            is_place: what.starts_with("__data_loc"),
        }),
        _ => refused(
            "field_must_have_a_place",
            offset,
            format!("field `{what}` has no offset and size, bound {RECORD_MAX}"),
        ),
    }
}

/// Values and letters of the states in the `print fmt` of sched_switch: `{ 0x1, "S" }`.
pub fn flags(print: &str) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for part in print.split('{').skip(1) {
        let Some((inside, _)) = part.split_once('}') else { continue };
        let Some((value, letter)) = inside.split_once(',') else { continue };
        let value = value.trim();
        let parsed = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        if let Some(value) = parsed {
            found.push((value, letter.trim().trim_matches('"').to_string()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: sched_switch\nID: 372\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] filename;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"%s\", { 0x0001, \"S\" }, { 16, \"X\" }\n";

    #[test]
    fn a_description_says_where_fields_are() {
        let layout = Layout::parse(TEXT, 0).unwrap();
        assert_eq!((layout.name.as_str(), layout.id, layout.fields.len()), ("sched_switch", 372, 4));
        let mut record = vec![0; 40];
        record[8..13].copy_from_slice(b"audio");
        record[24..28].copy_from_slice(&(5u32 << 16 | 32).to_le_bytes());
        record[28..32].copy_from_slice(&(-7i32).to_le_bytes());
        record[32..37].copy_from_slice(b"/bin\0");
        assert_eq!(layout.field("prev_comm").unwrap().text(&record), Some(&b"audio"[..]));
        assert_eq!(layout.field("filename").unwrap().text(&record), Some(&b"/bin"[..]));
        assert_eq!(layout.field("prev_pid").unwrap().number(&record), Some(-7));
        assert_eq!(layout.field("prev_pid").unwrap().number(&record[..30]), None);
        assert_eq!(flags(&layout.print), [(1, "S".to_string()), (16, "X".to_string())]);
    }

    #[test]
    fn what_is_wrong_with_a_description_is_named() {
        for (text, rule) in [
            ("ID: 3\n", "event_must_have_a_name"),
            ("name: a\n", "event_must_have_a_number"),
            ("name: a\nID: 65536\n", "event_must_have_a_number"),
            ("name: a\nID: 1\n\tfield:int x;\tsize:4;\n", "field_must_have_a_place"),
            (
                "name: a\nID: 1\n\tfield:int x;\toffset:99999999;\tsize:4;\tsigned:1;\n",
                "field_must_have_a_place",
            ),
        ] {
            let error = Layout::parse(text, 77).unwrap_err().to_string();
            assert!(error.starts_with(&format!("byte 77: {rule}: ")), "{error}");
        }
        let error = Layout::parse(TEXT, 5).unwrap().field("next_pid").unwrap_err().to_string();
        assert_eq!(
            error,
            "byte 5: field_must_be_described: the description of `sched_switch` has no field `next_pid`"
        );
    }
}
