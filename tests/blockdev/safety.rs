//! What is in use is refused, and the message says why.

use super::Test;
use super::bed::*;
use nandscope::device::{Consent, Device, DeviceError, Fill, Limits, Op};
use nandscope::host::list::list;
use nandscope::host::sysfs::Sys;
use std::path::Path;
use std::process::Command;

pub const LOOPS: &[Test] = &[
    ("mounted_is_refused", mounted_is_refused),
    ("mounted_partition_forbids_the_disk", mounted_partition_forbids_the_disk),
    ("another_loop_device_over_the_same_bytes_counts", another_loop_device_over_the_same_bytes_counts),
    ("swap_is_refused", swap_is_refused),
    ("running_system_is_refused", running_system_is_refused),
    ("second_open_is_refused", second_open_is_refused),
    ("attached_image_is_refused_for_writing", attached_image_is_refused_for_writing),
    ("backing_device_of_a_loop_is_refused", backing_device_of_a_loop_is_refused),
    ("write_protected_is_refused_for_writing", write_protected_is_refused_for_writing),
    ("consent_for_another_is_refused", consent_for_another_is_refused),
    ("signatures_say_what_would_be_lost", signatures_say_what_would_be_lost),
];

fn state(device: &str) -> nandscope::host::list::Listed {
    list(&Sys::default()).into_iter().find(|d| d.path == device).unwrap_or_else(|| panic!("{device} is not listed"))
}

fn mounted_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 16 * MIB);
    let l = Loop::over(&file, &[]);
    sh("mkfs.ext4", &["-q", "-F", &l.0]);
    assert!(state(&l.0).free && state(&l.0).consent == "16777216");
    let m = Mount::on(&l.0, &d.path().join("mnt"), &[]);
    let text = refusal(opened(&l.0));
    assert!(text.contains(&format!("{} is mounted at {}", l.0, m.0.display())) && text.contains("umount"), "{text}");
    assert!(!state(&l.0).free);
    // The image behind it may be read, not written.
    assert!(refusal(writable(file.to_str().unwrap(), &Limits::default())).contains("is mounted at"));
    // A bind mount of a directory keeps it in use after the first mount is gone.
    std::fs::create_dir(m.0.join("sub")).unwrap();
    let bind = Mount::on(m.0.join("sub").to_str().unwrap(), &d.path().join("bind"), &["--bind"]);
    drop(m);
    assert!(refusal(opened(&l.0)).contains(bind.0.to_str().unwrap()));
    drop(bind);
    assert!(opened(&l.0).is_ok());
}

/// A partition of an image that is mounted through a loop device of its own forbids those over the whole of it, and two runs on two loop devices
/// over one file do not write at the same time.
fn another_loop_device_over_the_same_bytes_counts() {
    let d = dir(false);
    let file = image(d.path(), 48 * MIB);
    let whole = Loop::over(&file, &[]);
    let part = Loop::over(&file, &["-o", "16777216"]);
    sh("mkfs.ext4", &["-q", "-F", &part.0]);
    let m = Mount::on(&part.0, &d.path().join("mnt"), &[]);
    assert!(refusal(opened(&whole.0)).contains(&format!("{} is mounted at", part.0)));
    assert!(!state(&whole.0).free);
    let front = Loop::over(&file, &["--sizelimit", "16777216"]);
    assert!(opened(&front.0).is_ok(), "it shows what lies before");
    drop(m);
    let first = writable(&whole.0, &Limits::default()).unwrap();
    assert!(refusal(writable(&part.0, &Limits::default())).contains("in use by another nandscope"));
    drop(first);
    assert!(writable(&part.0, &Limits::default()).is_ok());
}

fn mounted_partition_forbids_the_disk() {
    let d = dir(false);
    let file = image(d.path(), 40 * MIB);
    let l = Loop::partitioned(&file, &[(2048, 32768), (36864, 32768)]);
    let (one, two) = (format!("{}p1", l.0), format!("{}p2", l.0));
    sh("mkfs.ext4", &["-q", "-F", &two]);
    let m = Mount::on(&two, &d.path().join("mnt"), &[]);
    assert!(refusal(opened(&two)).contains("is mounted"));
    assert!(refusal(opened(&l.0)).contains(&format!("{two} is mounted")));
    assert!(opened(&one).is_ok(), "a sister partition is free");
    assert!(state(&one).free && !state(&two).free && !state(&l.0).free);
    drop(m);
    assert!(opened(&l.0).is_ok());
}

fn swap_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 16 * MIB);
    let l = Loop::over(&file, &[]);
    let s = Swap::on(&l.0);
    assert!(refusal(opened(&l.0)).contains(&format!("swapoff {}", l.0)));
    drop(s);
    let found = opened(&l.0).unwrap().signatures().unwrap();
    assert!(found.iter().any(|s| s.what == "swap"), "{found:?}");
}

fn running_system_is_refused() {
    let root = Sys::default().disks().into_iter().find(|d| {
        let name = format!("/dev/{}", d.name);
        list(&Sys::default())
            .iter()
            .any(|l| l.path == name && l.uses.iter().any(|u| matches!(u, nandscope::host::safety::InUse::System { .. })))
    });
    let Some(disk) = root else {
        crate::skip::skipped("refusing the disk of the running system", "its root is on no block device");
        return;
    };
    assert!(refusal(opened(&format!("/dev/{}", disk.name))).contains("running system"));
}

fn second_open_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let l = Loop::over(&file, &[]);
    let first = opened(&l.0).unwrap();
    assert!(refusal(opened(&l.0)).contains("in use by another program"));
    // One that goes within the second is waited for: a process that was killed is still closing its files.
    let late = |held: nandscope::device::Opened| {
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(held);
        })
    };
    let gone = late(first);
    drop(opened(&l.0).unwrap());
    gone.join().unwrap();
    let image = file.to_str().unwrap().to_string();
    drop(l);
    let gone = late(opened(&image).unwrap());
    drop(writable(&image, &Limits::default()).unwrap());
    gone.join().unwrap();
    let writer = writable(&image, &Limits::default()).unwrap();
    assert!(refusal(opened(&image)).contains("another nandscope"));
    drop(writer);
    // Readers do not disturb each other, but a writer does not come in.
    let _a = opened(&image).unwrap();
    let _b = opened(&image).unwrap();
    assert!(refusal(writable(&image, &Limits::default())).contains("another nandscope"));
}

fn attached_image_is_refused_for_writing() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    // Attached under another name of the same file.
    let link = d.path().join("link.img");
    std::fs::hard_link(&file, &link).unwrap();
    let l = Loop::over(&link, &[]);
    let o = opened(file.to_str().unwrap()).unwrap();
    assert!(o.facts().caveats.iter().any(|c| c.contains(l.name())));
    drop(o);
    assert!(refusal(writable(file.to_str().unwrap(), &Limits::default())).contains(&format!("losetup -d {}", l.0)));
}

fn backing_device_of_a_loop_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let below = Loop::over(&file, &[]);
    let above = Loop::over(Path::new(&below.0), &[]);
    assert!(refusal(opened(&below.0)).contains(&format!("attached to {}", above.name())));
    drop(above);
    assert!(opened(&below.0).is_ok());
}

fn write_protected_is_refused_for_writing() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let l = Loop::over(&file, &["--read-only"]);
    let o = opened(&l.0).unwrap();
    assert!(o.facts().read_only && state(&l.0).read_only);
    drop(o);
    assert!(refusal(writable(&l.0, &Limits::default())).contains("write-protected"));
}

fn consent_for_another_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let l = Loop::over(&file, &[]);
    let o = opened(&l.0).unwrap();
    for given in [None, Some("4194303"), Some("yes")] {
        assert!(refusal(Consent::check(o.id(), given)).contains("--consent 4194304"));
    }
    let other = Consent::check(o.id(), Some("4194304")).unwrap();
    drop((o, l));
    // The same size, another target.
    assert!(refusal(opened(file.to_str().unwrap()).unwrap().writable(&other, &Limits::default())).contains("another target"));
    // Read-only stays read-only.
    let mut r = opened(file.to_str().unwrap()).unwrap().read_only();
    let write = nandscope::device::Access { op: Op::Write(Fill::Ones), at: 0, len: 512 };
    assert!(matches!(r.access(write), Err(DeviceError::ReadOnly(_))));
}

fn signatures_say_what_would_be_lost() {
    let d = dir(false);
    let file = image(d.path(), 600 * MIB);
    let (start, count) = (8192, 1_048_576);
    let l = Loop::partitioned(&file, &[(start, count), (start + count, 131_072)]);
    let (one, two) = (format!("{}p1", l.0), format!("{}p2", l.0));
    let mut want = vec!["MBR, 2 partitions".to_string()];
    if have("mkfs.vfat", "recognising a real FAT32") {
        sh("mkfs.vfat", &["-F", "32", "-s", "8", "-R", "8192", "-f", "2", "-n", "CAMERA", &one]);
        // 8192 reserved sectors and two tables of (clusters + 2) * 4 bytes; mkfs says how long those are.
        want.push("partition 1 at 4 MiB: FAT32, 4 KiB clusters, data area at ".into());
    }
    if have("mkfs.exfat", "recognising a real exFAT") {
        sh("mkfs.exfat", &["-c", "32K", &two]);
        want.push("partition 2 at 516 MiB: exFAT, 32 KiB clusters, data area at ".into());
    }
    let read = |target: &str| opened(target).unwrap().signatures().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    let found = read(&l.0);
    for w in &want {
        assert!(found.iter().any(|f| f.starts_with(w)), "{w} in {found:?}");
    }
    for (tool, args, text) in [
        ("mkfs.ext4", &["-q", "-F", "-b", "4096", "-L", "root"][..], "ext4, 4 KiB blocks, label root"),
        ("mkfs.ext2", &["-q", "-F", "-b", "1024"][..], "ext2, 1 KiB blocks"),
        ("mkfs.btrfs", &["-q", "-f", "-L", "data"][..], "btrfs, label data"),
        ("mkfs.xfs", &["-q", "-f"][..], "XFS"),
        ("mkfs.f2fs", &["-q", "-f"][..], "F2FS"),
    ] {
        if have(tool, "recognising what it makes") {
            Command::new("wipefs").args(["-a", "-q", &one]).status().ok();
            sh(tool, &[args, &[&one]].concat());
            assert_eq!(read(&one).first().map(String::as_str), Some(text), "{tool}");
        }
    }
}
