//! MAST's XML: elements with attributes, as the same sections that the text has.

use super::notation::title;
use super::tree::{Group, Section, Value};
use crate::text::{short, Refusal, Text, Word};
use crate::xml::{escaped, Element};
use std::fmt::Write as _;

/// Elements of the file: name, section, type there.
const ELEMENTS: [(&str, &str, &str); 15] = [
    ("Regular_Processor", "processing_resource", "regular_processor"),
    ("Packet_Based_Network", "processing_resource", "packet_based_network"),
    ("Primary_Scheduler", "scheduler", "primary_scheduler"),
    ("Secondary_Scheduler", "scheduler", "secondary_scheduler"),
    ("Regular_Scheduling_Server", "scheduling_server", "regular"),
    ("Immediate_Ceiling_Resource", "shared_resource", "immediate_ceiling_resource"),
    ("Priority_Inheritance_Resource", "shared_resource", "priority_inheritance_resource"),
    ("SRP_Resource", "shared_resource", "srp_resource"),
    ("Simple_Operation", "operation", "simple"),
    ("Message_Transmission", "operation", "message_transmission"),
    ("Composite_Operation", "operation", "composite"),
    ("Enclosing_Operation", "operation", "enclosing"),
    ("Regular_Transaction", "transaction", "regular"),
    ("Timer", "timer", ""),
    ("Driver", "driver", ""),
];

/// Elements within these: name, field, type there. An empty type is the name.
const PARTS: [(&str, &str, &str); 17] = [
    ("Fixed_Priority_Scheduler", "policy", "fixed_priority"),
    ("EDF_Scheduler", "policy", "edf"),
    ("FP_Packet_Based_Scheduler", "policy", "fp_packet_based"),
    ("SRP_Parameters", "server_synch_parameters", "srp_parameters"),
    ("Ticker_System_Timer", "system_timer", "ticker"),
    ("Alarm_Clock_System_Timer", "system_timer", "alarm_clock"),
    ("Overridden_Fixed_Priority", "new_sched_parameters", "overridden_fixed_priority"),
    ("Overridden_Permanent_FP", "new_sched_parameters", "overridden_permanent_fp"),
    ("Periodic_External_Event", "external_events", "periodic"),
    ("Sporadic_External_Event", "external_events", "sporadic"),
    ("Singular_External_Event", "external_events", "singular"),
    ("Unbounded_External_Event", "external_events", "unbounded"),
    ("Bursty_External_Event", "external_events", "bursty"),
    ("Regular_Event", "internal_events", "regular"),
    ("Hard_Global_Deadline", "timing_requirements", "hard_global_deadline"),
    ("Soft_Global_Deadline", "timing_requirements", "soft_global_deadline"),
    ("Composite_Timing_Requirement", "timing_requirements", "composite"),
];

/// Fields that are named in another way: XML, text.
const FIELDS: [(&str, &str); 3] = [
    ("Average_Case_Execution_Time", "avg_case_execution_time"),
    ("Event", "name"),
    ("Operation_List", "composite_operation_list"),
];

/// Fields of several words that are elements with text.
const LISTS: [&str; 4] =
    ["Shared_Resources_List", "Shared_Resources_To_Lock", "Shared_Resources_To_Unlock", "Operation_List"];

/// The sections of a file.
pub fn parse(root: Element, text: &Text) -> Result<Vec<Section>, Refusal> {
    let mut model = Group { at: root.word(), fields: Vec::new() };
    attributes(root, &mut model);
    let mut sections = vec![Section { kind: "model".into(), group: model }];
    for child in root.children() {
        let Some((_, section, kind)) = ELEMENTS.iter().find(|(name, _, _)| *name == child.name()) else {
            let message = format!("`{}` is no element of a model", short(child.name()));
            return Err(text.fault("element_must_be_known", child.word().at, message));
        };
        sections.push(Section { kind: (*section).into(), group: group(child, kind) });
    }
    Ok(sections)
}

fn attributes(element: Element, group: &mut Group) {
    for (mut key, value) in element.attributes() {
        let other = FIELDS.iter().find(|(xml, _)| *xml == key.text);
        key.text = other.map_or(key.text.to_ascii_lowercase(), |(_, text)| (*text).into());
        let several = key.text.ends_with("_list");
        let value = if several { Value::List(crate::xml::words(&value)) } else { Value::Word(value) };
        group.fields.push((key, value));
    }
}

fn group(element: Element, kind: &str) -> Group {
    let mut group = Group::new(element.word(), kind);
    attributes(element, &mut group);
    let mut parts: Vec<(String, Vec<Group>)> = Vec::new();
    for child in element.children() {
        if LISTS.contains(&child.name()) {
            let other = FIELDS.iter().find(|(xml, _)| *xml == child.name());
            let key = other.map_or(child.name().to_ascii_lowercase(), |(_, text)| (*text).into());
            let list = Value::List(crate::xml::words(&child.content()));
            group.fields.push((Word { text: key, at: child.word().at }, list));
            continue;
        }
        let known = PARTS.iter().find(|(name, _, _)| *name == child.name());
        let name = child.name().to_ascii_lowercase();
        let (field, kind) = match known {
            Some((_, field, kind)) => (*field, (*kind).to_string()),
            // Policies of servers, handlers of events, and requirements have the names that they have in the text.
            None if name.ends_with("_policy") => ("server_sched_parameters", name),
            None if kind == "regular" && element.name() == "Regular_Event" => ("timing_requirements", name),
            None if element.name().starts_with("Composite_Timing") => ("timing_requirements", name),
            None => ("event_handlers", name),
        };
        let field = if element.name().starts_with("Composite_Timing") { "requirements_list" } else { field };
        let part = self::group(child, &kind);
        match parts.iter_mut().find(|(found, _)| found == field) {
            Some((_, groups)) => groups.push(part),
            None => parts.push((field.into(), vec![part])),
        }
    }
    for (field, groups) in parts {
        group.groups(&field, groups);
    }
    group
}

/// Sections as a file.
pub fn show(sections: &[Section]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<mast_mdl:MAST_MODEL\n");
    let site = "http://mast.unican.es/xmlmast/xmlmast_1_4/Mast_Model";
    let _ = write!(
        text,
        "   xmlns:mast_mdl=\"{site}\"\n   xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
    );
    let _ = write!(text, "   xsi:schemaLocation=\"{site} {site}.xsd\"");
    for Section { group, .. } in sections.iter().filter(|section| section.kind == "model") {
        text += &shown_attributes("MAST_MODEL", group);
    }
    text += ">\n";
    for Section { kind, group } in sections {
        let name = |(name, section, of): &&(&'static str, &str, &str)| {
            (*section == kind && *of == group.kind()).then_some(*name)
        };
        if let Some(name) = ELEMENTS.iter().find_map(|element| name(&element)) {
            show_element(&mut text, name, group, 1);
        }
    }
    text += "</mast_mdl:MAST_MODEL>\n";
    text
}

fn shown_attributes(element: &str, group: &Group) -> String {
    let mut text = String::new();
    for (key, value) in &group.fields {
        let words = match value {
            Value::Word(word) if key.text != "type" => word.text.clone(),
            Value::List(words) if key.text.starts_with("input") || key.text.starts_with("output") => {
                words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join(" ")
            }
            _ => continue,
        };
        let key = match &key.text[..] {
            "name" if element == "Regular_Event" => "Event".into(),
            "avg_case_execution_time" => "Average_Case_Execution_Time".into(),
            key => title(key),
        };
        let _ = write!(text, " {key}=\"{}\"", escaped(&words));
    }
    text
}

fn show_element(text: &mut String, name: &str, group: &Group, depth: usize) {
    let indent = "   ".repeat(depth);
    let _ = write!(text, "{indent}<mast_mdl:{name}{}", shown_attributes(name, group));
    let mut within = String::new();
    for (key, value) in &group.fields {
        let attribute = key.text.starts_with("input") || key.text.starts_with("output");
        match value {
            Value::List(words) if !attribute => {
                let words: Vec<_> = words.iter().map(|word| escaped(&word.text)).collect();
                let other = FIELDS.iter().find(|(_, text)| *text == key.text);
                let name = other.map_or(title(&key.text), |(xml, _)| (*xml).into());
                let _ = writeln!(within, "{indent}   <mast_mdl:{name}>{}</mast_mdl:{name}>", words.join(" "));
            }
            Value::Groups(groups) => {
                for part in groups {
                    let kind = part.kind();
                    let name = PARTS.iter().find(|(_, field, of)| *field == key.text && *of == kind);
                    let name = name.map_or(title(&kind), |(name, _, _)| (*name).into());
                    show_element(&mut within, &name, part, depth + 1);
                }
            }
            _ => {}
        }
    }
    if within.is_empty() {
        *text += "/>\n";
    } else {
        let _ = write!(text, ">\n{within}{indent}</mast_mdl:{name}>\n");
    }
}
