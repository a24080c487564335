//! What a finding can be about: one table. An entry in `table.rs` is a quantity; what each of them needs, the compiler asks for.

use super::Unit;
use super::When;

/// What is known of a quantity beside its value.
#[derive(Debug)]
pub struct Row {
    /// The name in JSON: that of the variant in small letters.
    pub key: &'static str,
    /// The name for people.
    pub title: &'static str,
    pub unit: Unit,
    /// The value that says that the card has none of it.
    pub none: Option<f64>,
    /// Of a quantity that is a choice: the numbers in JSON and the words for them; a number that is not listed is the last.
    pub codes: &'static [(f64, &'static str)],
    /// What it is, one sentence. Empty: the question of the experiment stands for it.
    pub what: &'static str,
    /// What a value means for whoever uses the card; the first that applies is said, with the value in place of `{}`.
    pub means: &'static [(When, &'static str)],
}

/// Of what an entry need not say: no value for none, no words for numbers, nothing that follows.
const PLAIN: Row = Row { key: "", title: "", unit: Unit::Count, none: None, codes: &[], what: "", means: &[] };

/// An entry says its first four fields, and of the others those that are not as in [`PLAIN`].
macro_rules! quantities {
    ($($(#[doc = $doc:literal])* $name:ident => Row {
        key: $key:expr,
        title: $title:expr,
        unit: $unit:expr,
        what: $what:expr,
        $($more:ident: $value:expr,)*
    },)*) => {
        /// What a finding is about. Sizes are in bytes, rates in bytes a second, costs in milliseconds, the rest are counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Quantity {
            $($(#[doc = $doc])* $name,)*
        }

        /// In the order in which they are told.
        pub(super) static TABLE: &[Row] = &[$(Row { key: $key, title: $title, unit: $unit, what: $what, $($more: $value,)* ..PLAIN },)*];

        impl Quantity {
            pub const ALL: [Quantity; [$(Quantity::$name),*].len()] = [$(Quantity::$name),*];
        }
    };
}

mod table;

pub use table::Quantity;
use table::TABLE;

impl Quantity {
    /// All that is known of it.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod quantity_tests;
