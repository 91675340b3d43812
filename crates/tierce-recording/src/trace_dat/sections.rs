//! The sections of version 7, and the options that say where they are.

use super::how::{chosen, clock_of, option, Clock, How, Opened, Packing, Part, CPUS_MAX, TRACECLOCK};
use crate::bytes::{Cursor, Source};
use crate::metadata::{events, headers};
use crate::refusal::{refused, Result};
use crate::sched::Decoder;
use std::io::Read;

const BUFFER: u16 = 3;
const CPUCOUNT: u16 = 8;
const HEADER_INFO: u16 = 16;
const EVENT_FORMATS: u16 = 18;

/// More lists of options, one after the other, are a circle.
const LISTS_MAX: u32 = 1000;

/// What a section or a chunk of pages may be when it is not compressed.
pub const UNPACKED_MAX: u32 = 1 << 26;

/// What options have said.
#[derive(Default)]
struct Found {
    headers: Option<u64>,
    formats: Option<u64>,
    cpus: u32,
    clock: String,
    tsc: Option<Clock>,
    buffer: Option<(u64, u64, Vec<(u32, u64, u64)>)>,
}

/// Version 7, after its first words.
pub fn version_7(cursor: &mut Cursor, source: &Source, page_size: u32) -> Result<Opened> {
    let at = cursor.offset();
    let name = cursor.text("the name of the compression")?;
    cursor.text("the version of the compression")?;
    let packing = match name.as_str() {
        "none" | "" => None,
        "zstd" => Some(Packing::Zstd),
        "zlib" => Some(Packing::Zlib),
        other => {
            let other: String = other.chars().take(20).collect();
            return refused("compression_must_be_known", at, format!("{other:?}, bound none, zlib or zstd"));
        }
    };
    let mut next = cursor.u64("where options are")?;
    let mut found = Found::default();
    for list in 0.. {
        if next == 0 {
            break;
        }
        if list == LISTS_MAX {
            return refused(
                "options_must_end",
                next,
                format!("more than {LISTS_MAX} lists of options follow each other"),
            );
        }
        next = options(source, next, packing, &mut found)?;
    }
    let (Some(headers_at), Some(formats_at), Some((buffer_at, pages, cpus))) =
        (found.headers, found.formats, found.buffer)
    else {
        let message = "the options do not say where descriptions and pages are";
        return refused("sections_must_be_there", at, message);
    };
    let (bytes, base) = section(source, headers_at, packing)?;
    let (page, entries) = headers(&mut Cursor::new(&bytes, base))?;
    let (bytes, base) = section(source, formats_at, packing)?;
    let decoder = Decoder::new(&events(&mut Cursor::new(&bytes, base))?, formats_at)?;
    let head = source.part(buffer_at, 16, "the head of a section")?;
    let packed = packing.filter(|_| head[2] & 1 != 0);
    let most = cpus.iter().map(|(cpu, ..)| cpu + 1).max().unwrap_or(1).max(found.cpus);
    if most > CPUS_MAX {
        return refused("cpus_must_be_few", buffer_at, format!("{most} CPUs, bound 1 to {CPUS_MAX}"));
    }
    let clock = clock_of(&found.clock, found.tsc, at)?;
    let page_size = if pages == 0 { page_size.into() } else { pages };
    let parts = cpus.into_iter().map(|(cpu, offset, size)| Part { cpu, offset, size, packed }).collect();
    let how = How { page, entries, decoder, page_size, at_once: 0, clock };
    Ok(Opened { how, parts, cpus: most, clock: chosen(&found.clock).into() })
}

/// One list of options; where the next one is, 0 for nowhere.
fn options(source: &Source, at: u64, packing: Option<Packing>, found: &mut Found) -> Result<u64> {
    let (bytes, base) = section(source, at, packing)?;
    let mut cursor = Cursor::new(&bytes, base);
    while cursor.left() > 0 {
        let id = cursor.u16("the number of an option")?;
        let length = cursor.u32("an option")?;
        let offset = cursor.offset();
        let mut inside = Cursor::new(cursor.take(length.into(), "an option")?, offset);
        match id {
            0 => return inside.u64("where the next options are"),
            BUFFER => buffer(&mut inside, found)?,
            CPUCOUNT => found.cpus = inside.u32("the number of CPUs")?.min(CPUS_MAX + 1),
            HEADER_INFO => found.headers = Some(inside.u64("where a section is")?),
            EVENT_FORMATS => found.formats = Some(inside.u64("where a section is")?),
            // A buffer says its own clock.
            TRACECLOCK if !found.clock.is_empty() => {}
            _ => option(id, &mut inside, &mut found.clock, &mut found.tsc)?,
        }
    }
    Ok(0)
}

/// Where the pages of a buffer are. Of several, the machine's own one counts, which has no name.
fn buffer(cursor: &mut Cursor, found: &mut Found) -> Result<()> {
    let section = cursor.u64("where pages are")?;
    let name = cursor.text("the name of a buffer")?;
    if found.buffer.is_some() && !name.is_empty() {
        return Ok(());
    }
    found.clock = cursor.text("the clock of a buffer")?;
    let at = cursor.offset();
    let page_size = cursor.u32("the size of a page")?;
    if page_size != 0 && !(512..=1 << 20).contains(&page_size) {
        let message = format!("a page has {page_size} bytes, bound 512 to {}", 1 << 20);
        return refused("page_size_must_be_possible", at, message);
    }
    let mut cpus = Vec::new();
    for _ in 0..cursor.u32("the number of CPUs")? {
        let at = cursor.offset();
        let cpu = cursor.u32("the number of a CPU")?;
        if cpu >= CPUS_MAX {
            return refused("cpus_must_be_few", at, format!("CPU {cpu}, bound 0 to {}", CPUS_MAX - 1));
        }
        cpus.push((cpu, cursor.u64("where pages are")?, cursor.u64("how long they are")?));
    }
    found.buffer = Some((section, page_size.into(), cpus));
    Ok(())
}

/// The contents of a section, and where they begin.
fn section(source: &Source, at: u64, packing: Option<Packing>) -> Result<(Vec<u8>, u64)> {
    let head = source.part(at, 16, "the head of a section")?;
    let mut cursor = Cursor::new(&head, at);
    cursor.u16("the number of a section")?;
    let flags = cursor.u16("the flags of a section")?;
    cursor.u32("the description of a section")?;
    let size = cursor.u64("the size of a section")?;
    let inside = source.part(at + 16, size, "a section")?;
    match packing.filter(|_| flags & 1 != 0) {
        None => Ok((inside, at + 16)),
        Some(packing) => {
            let mut cursor = Cursor::new(&inside, at + 16);
            Ok((unpack_next(&mut cursor, packing)?, at + 16))
        }
    }
}

/// The next compressed part: its size, its size when it is not compressed, the bytes.
fn unpack_next(cursor: &mut Cursor, packing: Packing) -> Result<Vec<u8>> {
    let size = cursor.u32("the size of what is compressed")?;
    let at = cursor.offset();
    let becomes = cursor.u32("the size of what was compressed")?;
    let packed = cursor.take(size.into(), "what is compressed")?;
    unpack(packed, becomes, packing, at)
}

/// What these bytes were before they were compressed: so many.
pub fn unpack(packed: &[u8], becomes: u32, packing: Packing, at: u64) -> Result<Vec<u8>> {
    if becomes > UNPACKED_MAX {
        return refused(
            "part_must_be_short",
            at,
            format!("{becomes} bytes were compressed, bound {UNPACKED_MAX}"),
        );
    }
    let mut bytes = Vec::new();
    let most = u64::from(becomes) + 1;
    let done = match packing {
        Packing::Zstd => {
            zstd::Decoder::with_buffer(packed).and_then(|reader| reader.take(most).read_to_end(&mut bytes))
        }
        Packing::Zlib => flate2::read::ZlibDecoder::new(packed).take(most).read_to_end(&mut bytes),
    };
    match done {
        Ok(length) if length as u64 == u64::from(becomes) => Ok(bytes),
        Ok(length) => {
            let message = format!("{becomes} bytes were compressed, and {length} or more come out");
            refused("compressed_part_must_be_whole", at, message)
        }
        Err(error) => refused("compressed_part_must_be_whole", at, error),
    }
}
