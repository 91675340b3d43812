//! From a model of MAST to a plan.

use super::flows::Flows;
use super::locks::{fit, locks};
use super::notation;
use super::operations::Operations;
use super::platform::Platform;
use super::tree;
use super::xml;
use crate::decimal::Decimal;
use crate::draft::Draft;
use crate::text::{Refusal, Text};
use crate::xml::Element;
use std::cell::Cell;
use std::collections::HashMap;

/// The plan of a text; one unit of its times is `unit_ns`.
pub fn read_text(text: &Text, unit_ns: u64) -> Result<Draft, Refusal> {
    read(&notation::parse(text)?, text, unit_ns, "MAST")
}

/// The plan of a file of XML.
pub fn read_xml(root: Element, text: &Text, unit_ns: u64) -> Result<Draft, Refusal> {
    read(&xml::parse(root, text)?, text, unit_ns, "MAST, XML")
}

fn read(sections: &[tree::Section], text: &Text, unit_ns: u64, format: &str) -> Result<Draft, Refusal> {
    let unit = Decimal::new(unit_ns.into(), 1);
    let mut draft = Draft::default();
    draft.head.push(format!("Imported from {} ({format}).", text.name()));
    let of = |kind| tree::of_kind(sections, kind);
    for model in of("model") {
        draft.head.extend(model.get("model_name").map(|name| format!("Model {}.", name.text)));
    }
    let known = [
        "model",
        "processing_resource",
        "scheduler",
        "scheduling_server",
        "shared_resource",
        "operation",
        "transaction",
    ];
    for section in sections.iter().filter(|section| !known.contains(&&section.kind[..])) {
        let what = format!("section {}", notation::quoted(&section.group.at));
        draft.left_out.push(text.left_out(&section.group.at.at, what, "plans have none"));
    }
    let platform = Platform::new(text, unit, sections, &mut draft)?;
    let mut all = HashMap::new();
    for operation in of("operation") {
        let name = operation.need("name", text)?;
        if all.insert(name.text.to_ascii_lowercase(), operation).is_some() {
            return Err(text.fault("name_must_be_unique", name.at.clone(), "there is one more of this name"));
        }
    }
    let locks = locks(of("shared_resource"), text, &mut draft)?;
    let operations = Operations { text, all, locks, pieces: Cell::new(0) };
    let mut uses = HashMap::new();
    for handler in of("transaction").flat_map(|transaction| transaction.parts("event_handlers")) {
        if let Some(server) = handler.get("activity_server") {
            *uses.entry(server.text.to_ascii_lowercase()).or_insert(0) += 1;
        }
    }
    let flows = Flows { text, unit, platform: &platform, operations: &operations, uses };
    for transaction in of("transaction") {
        flows.add(transaction, &mut draft)?;
    }
    let nodes = platform.servers.values().map(|server| (server.node.clone(), (server.order, server.cpu)));
    fit(&mut draft, &nodes.collect());
    Ok(draft)
}
