//! `nandscope list`: the block devices, whether they are free, and what `--consent` must say.

use super::args::Json;
use crate::device::undo::waiting_on;
use crate::host::list::{Listed, list};
use crate::host::safety::device_number;
use crate::host::sysfs::Sys;
use crate::units::as_sold;
use std::path::Path;
use std::process::ExitCode;

/// List block devices with size, bus, model, use, and the ID that --consent wants
#[derive(clap::Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    json: Json,
}

/// Prints the list.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    use std::io::{IsTerminal, Write};
    let all = list(&Sys::default());
    if !args.json.put_text(&format!("{:#}\n", super::form("nandscope-device/1", &all)))? {
        // Scripts want a line a device.
        let columns = if std::io::stdout().is_terminal() { super::width() } else { usize::MAX };
        super::stdout().write_all(table(&all, columns).as_bytes())?;
    }
    // Programs read the table.
    for d in &all {
        super::undo::remind(&d.path, device_number(Path::new(&d.path)).and_then(|n| waiting_on(&Sys::default(), n)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The table, with a hint where there is nothing to list.
fn table(all: &[Listed], columns: usize) -> String {
    if all.is_empty() {
        return "no block devices; 'nandscope cards' lists the simulated ones\n".into();
    }
    let mut rows = vec![["DEVICE", "SIZE", "BUS", "MODEL", "STATE", "CONSENT ID"].map(String::from)];
    rows.extend(all.iter().map(row));
    let width: Vec<usize> = (0..6).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for r in rows {
        // The state is the longest column and stands last, so that the others stay in line.
        let line = [0, 1, 2, 3, 5].map(|c| format!("{:<w$}", r[c], w = width[c])).join("  ") + "  " + &r[4];
        // On a screen too narrow for that, each has a line of its own below the device.
        let room = r.iter().zip(&width).take(4).map(|(_, w)| w + 2).sum::<usize>() + width[5];
        if room > columns {
            if r[0] != "DEVICE" {
                let own = r[1..5].iter().filter(|c| !c.is_empty()).map(|c| format!("    {c}\n"));
                text += &format!("{}\n{}    consent ID {}\n", r[0], own.collect::<String>(), r[5]);
            }
            continue;
        }
        // Where even so it is too long, it stands below.
        let (head, state) = line.split_at(line.len() - r[4].len());
        let too_wide = line.chars().count() > columns;
        let line = if too_wide { format!("{}\n    {state}", head.trim_end()) } else { line };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(d: &Listed) -> [String; 6] {
    let indent = if d.disk.is_some() { "  " } else { "" };
    let model = if d.disk.is_some() {
        String::new()
    } else {
        [d.vendor.as_deref(), d.model.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let mut state = match d.uses.as_slice() {
        [] => "free".to_string(),
        [one] => short(one),
        [one, rest @ ..] => format!("{} (and {} more)", short(one), rest.len()),
    };
    if d.read_only {
        state.push_str(", write-protected");
    }
    [format!("{indent}{}", d.path), as_sold(d.size), d.bus.clone(), model, state, d.consent.clone()]
}

fn short(u: &crate::host::safety::InUse) -> String {
    use crate::host::safety::InUse;
    match u {
        InUse::Mounted { at, .. } => format!("mounted at {}", at.display()),
        InUse::Swap { .. } => "swap".into(),
        InUse::Holder { holder, .. } => format!("part of {holder}"),
        InUse::System { .. } => "running system".into(),
        InUse::Loop { by, .. } => format!("attached to {by}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::safety::InUse;

    fn disk(path: &str, uses: Vec<InUse>) -> Listed {
        Listed {
            path: path.into(),
            disk: None,
            size: 4 << 30,
            offset: 0,
            bus: "usb".into(),
            vendor: Some("ACME".into()),
            model: Some("Stick".into()),
            serial: Some("S1".into()),
            removable: Some(true),
            read_only: false,
            free: uses.is_empty(),
            uses,
            consent: "S1".into(),
        }
    }

    #[test]
    fn the_table_says_what_is_free_and_what_consent_must_say() {
        let mounted = InUse::Mounted { device: "/dev/sdb1".into(), at: "/mnt".into() };
        let part = Listed { disk: Some("/dev/sdb".into()), size: 1 << 20, ..disk("/dev/sdb1", vec![mounted.clone()]) };
        let swap = InUse::Swap { device: "/dev/sdb2".into() };
        let text = table(&[disk("/dev/sda", vec![]), disk("/dev/sdb", vec![mounted, swap]), part], 200);
        assert_eq!(
            text,
            "DEVICE       SIZE              BUS  MODEL       CONSENT ID  STATE\n\
             /dev/sda     4.3 GB (4.0 GiB)  usb  ACME Stick  S1          free\n\
             /dev/sdb     4.3 GB (4.0 GiB)  usb  ACME Stick  S1          mounted at /mnt (and 1 more)\n  \
               /dev/sdb1  1 MB (1 MiB)      usb              S1          mounted at /mnt\n"
        );
        let narrow = table(&[disk("/dev/sda", vec![]), disk("/dev/mmcblk0", vec![])], 40);
        assert!(
            narrow.starts_with("/dev/sda\n    4.3 GB (4.0 GiB)\n    usb\n    ACME Stick\n    free\n    consent ID S1\n/dev/mmcblk0\n"),
            "{narrow}"
        );
        assert!(table(&[], 80).contains("nandscope cards"));
    }
}
