//! A saved report.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = nandscope::report::Report::parse(&String::from_utf8_lossy(data), "fuzz");
});
