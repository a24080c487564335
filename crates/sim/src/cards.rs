//! The cards that come with the crate, as TOML texts.

macro_rules! cards {
    ($($name:literal),+ $(,)?) => {
        /// Name and text of every card.
        pub const ALL: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../cards/", $name, ".toml")))),+];
    };
}

cards!("flashbench-readme", "toshiba-emmc", "sandisk-emmc", "tlc-12mib", "page-mapped", "usb-stick", "noisy", "null",);

/// The text of a card, by its name.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
}
