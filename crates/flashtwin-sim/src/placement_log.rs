//! Log pages 20h to 23h of flexible data placement, and the status of the placement handles, as JSON. The names of
//! fields are those of NVMe.
//!
//! Sums of bytes are decimal text, because they may need 128 bits. Two fields differ from NVMe:
//! - A handle has an additional field `mbmw`, as in FEMU: bytes programmed into units of the handle's class.
//! - An event has no time, but a field `clock`: the number of pages that the host had written.

use flashtwin::placement::{EventType, Isolation, Placed};
use serde_json::{json, Value};

/// Returns the log pages in the order of their numbers. Page 23h is contained twice: first with the events of the host,
/// then with those of the controller.
pub fn placement_logs(device: &Placed, page_bytes: u32) -> Vec<Value> {
    let setup = device.setup();
    let bytes = |pages: u64| (u128::from(pages) * u128::from(page_bytes)).to_string();
    let isolation = |kind: &Isolation| match kind {
        Isolation::Initially => "initially-isolated",
        Isolation::Persistently => "persistently-isolated",
    };
    let types: Vec<Value> = (device.handle_types().iter())
        .map(|kind| json!({"type": isolation(kind)}))
        .collect();
    let configuration = json!({
        "valid": true,
        "volatile_write_cache": false,
        "rgif": setup.group_bits,
        "nrg": setup.groups,
        "nruh": setup.handles.len(),
        "maxpids": setup.namespace.len() - 1,
        "runs": u64::from(setup.unit_pages) * u64::from(page_bytes),
        "erutl_s": 0,
        "ruh": types,
    });
    let report = device.report();
    let programmed = |handle: usize| -> u64 {
        let of_class = report.owners.iter();
        let of_class = of_class.filter(|owner| owner.class.map(usize::from) == Some(handle));
        of_class
            .map(|owner| owner.counts.host_pages + owner.counts.moved_in)
            .sum()
    };
    let named = |handle: usize| match handle < setup.namespace.len() {
        true => "host-specified",
        false => "unused",
    };
    let usage = |(handle, &accepted): (usize, &u64)| {
        json!({
            "ruhid": handle,
            "attributes": named(handle),
            "hbmw": bytes(accepted),
            "mbmw": bytes(programmed(handle)),
        })
    };
    let usage: Vec<Value> = report.accepted.iter().enumerate().map(usage).collect();
    let totals = device.totals();
    vec![
        json!({"log": "20h", "configurations": [configuration]}),
        json!({"log": "21h", "ruh": usage}),
        json!({
            "log": "22h",
            "hbmw": bytes(totals.host),
            "mbmw": bytes(totals.media),
            "mbe": bytes(totals.erased),
        }),
        events(device, true),
        events(device, false),
    ]
}

/// Returns log page 23h, for events of the host or of the controller. The page has the number of all events, and the
/// most recent events, oldest first.
fn events(device: &Placed, of_host: bool) -> Value {
    let types = EventType::ALL.iter();
    let total: u64 = (types.filter(|kind| kind.is_of_host() == of_host))
        .map(|&kind| device.event_total(kind))
        .sum();
    let last = device.last_events(of_host).into_iter().map(|event| {
        json!({
            "type": event.kind.code(),
            "name": event.kind.name(),
            "pid": event.id,
            "ruhid": event.handle,
            "rgid": event.group,
            "clock": event.clock,
            "moved": event.moved,
        })
    });
    json!({
        "log": "23h",
        "kind": if of_host { "host" } else { "controller" },
        "total": total,
        "events": last.collect::<Vec<Value>>(),
    })
}

/// Returns the status of each placement handle in each group: the placement id, the handle, and the number of bytes
/// that can still be written to the handle's unit (RUAMW).
pub fn placement_status(device: &Placed, page_bytes: u32) -> Value {
    let of = device.status().into_iter().map(|status| {
        json!({
            "pid": status.id,
            "ruhid": status.handle,
            "earutr_s": 0,
            "ruamw": u64::from(status.pages_left) * u64::from(page_bytes),
        })
    });
    Value::Array(of.collect())
}
