//! The cards that come with the crate, as TOML texts.

macro_rules! cards {
    ($($name:literal),+ $(,)?) => {
        /// Name and text of every card.
        pub const ALL: &[(&str, &str)] = &[$(($name, include_str!(concat!("../cards/", $name, ".toml")))),+];
    };
}

cards!(
    "flashbench-readme",
    "toshiba-emmc",
    "sandisk-emmc",
    "tlc-12mib",
    "page-mapped",
    "usb-stick",
    "noisy",
    "null",
    "patriot-16gb",
    "olpc-good",
    "olpc-a-4gb",
    "olpc-a1-4gb",
    "olpc-b-4gb",
    "olpc-c-8gb",
    "olpc-unusable",
    "chan-sdc-128mb",
    "chan-sdc-512mb",
    "chan-mmc-128mb",
    "wintec-1gb",
    "swissbit-1gb",
    "atp-slc-1gb",
    "sandisk-c2-2gb",
    "amazon-c10-4gb",
    "sdxc-64gb",
    "cf-256mb",
    "modern-a1-32gb",
    "modern-a2-128gb",
    "emmc51-8gb",
    "sdxc-1tb",
    "fake-wrap-32gb",
    "fake-drop-64gb",
    "fake-error-16gb",
);

/// The text of a card, by its name.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
}
