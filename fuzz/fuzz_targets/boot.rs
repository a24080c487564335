//! The boot sector of a FAT or exFAT volume.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = nandscope_fat::recognise(data);
});
