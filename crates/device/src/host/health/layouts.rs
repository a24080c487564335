//! Layouts of health blocks, as tables.
//!
//! `uncertain` marks fields that only one program reads so, or whose meaning is inferred from published values.

use super::{HealthBlock, Value};

/// How a field lies in the block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Big-endian, bytes.
    Be(usize),
    /// Little-endian, bytes.
    Le(usize),
    /// Lower 16 bits at the field's place, upper 16 at this one, both big-endian.
    Halves(usize),
    /// Sum of single bytes, one a die.
    Sum(usize),
    /// Bytes shown as hex digits.
    Hex(usize),
    /// Text padded with blanks or NULs.
    Text(usize),
    /// One byte and what its codes mean.
    Coded(&'static [(u8, &'static str)]),
}

/// One field of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub key: &'static str,
    pub title: &'static str,
    pub at: usize,
    pub form: Form,
    /// The same in every reading of a card.
    pub constant: bool,
    /// Never falls.
    pub counter: bool,
    pub uncertain: bool,
}

impl Field {
    const fn fixed(self) -> Field {
        Field { constant: true, ..self }
    }

    const fn counts(self) -> Field {
        Field { counter: true, ..self }
    }

    const fn unsure(self) -> Field {
        Field { uncertain: true, ..self }
    }
}

const fn f(key: &'static str, title: &'static str, at: usize, form: Form) -> Field {
    Field { key, title, at, form, constant: false, counter: false, uncertain: false }
}

/// A maker's layout of the block.
#[derive(Debug)]
pub struct Layout {
    /// Name.
    pub name: &'static str,
    pub(super) signatures: &'static [&'static [u8]],
    pub(super) fields: &'static [Field],
    /// Relations between fields that every such block keeps.
    pub(super) check: fn(&[u8], &HealthBlock) -> Result<(), String>,
    /// Fills the fields all layouts share.
    pub(super) summary: fn(&mut HealthBlock),
}

/// The one question that is put to a card.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// A block of zeros is sent with this argument first, where the layout needs it.
    pub first_write: Option<u32>,
    /// Argument of the CMD56 that reads the block; bit 0 is set.
    pub argument: u32,
    /// The layout expected.
    pub layout: &'static Layout,
}

/// The question for a card by its CID; none where no card of this maker is known to answer.
///
/// Arguments are never tried in turn: of one card all were tried, and its device disappeared. The maker in the CID does not
/// decide which layout answers (a SanDisk-labelled card answered as Phison's do), so the signature of the answer does.
pub fn query_for(manfid: u32, oemid: u16) -> Option<Query> {
    let read = |argument, layout| Some(Query { first_write: None, argument, layout });
    match manfid {
        // SanDisk and WD; Longsys.
        0x03 => read(1, &SANDISK),
        0xad => read(1, &LONGSYS),
        // Micron.
        0xfe => read(0x1100_05fb, &MICRON),
        // ADATA.
        0x1d => read(0x1100_05f1, &ADATA),
        // Transcend.
        0x1c | 0x1e | 0x74 => read(0x1100_05f9, &TRANSCEND),
        // Swissbit.
        0x5d => read(0x5342_0001, &SWISSBIT),
        // Phison and Kingston's industrial cards (oem "42"): a block of zeros first, then the read.
        0x27 => Some(Query { first_write: Some(0x10), argument: 0x21, layout: &PHISON }),
        0x41 if oemid == 0x3432 => Some(Query { first_write: Some(0x10), argument: 0x21, layout: &PHISON }),
        _ => None,
    }
}

/// All layouts.
pub(super) const ALL: &[&Layout] = &[&SANDISK, &LONGSYS, &INNODISK, &ADATA, &TRANSCEND, &MICRON, &SWISSBIT, &PHISON];

pub(super) fn field(layout: &str, key: &str) -> Option<&'static Field> {
    ALL.iter().find(|l| l.name == layout)?.fields.iter().find(|f| f.key == key)
}

/// A check that refuses with the first relation that does not hold.
fn all_hold(relations: &[(bool, &str)]) -> Result<(), String> {
    relations.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err((*why).to_string()))
}

/// Minimum <= mean <= maximum of erase counts, where the block has them.
fn ordered(b: &HealthBlock, min: &str, mean: &str, max: &str) -> bool {
    match (b.number(min), b.number(mean), b.number(max)) {
        (Some(min), Some(mean), Some(max)) => min <= mean && mean <= max,
        _ => true,
    }
}

fn is_digits(b: &HealthBlock, key: &str) -> bool {
    matches!(b.get(key), Some(Value::Text(t)) if t.len() == 6 && t.bytes().all(|c| c.is_ascii_digit()))
}

/// SanDisk and Western Digital, industrial and purple cards.
static SANDISK: Layout = Layout {
    name: "sandisk-wd",
    signatures: &[b"DS", b"DW"],
    fields: &[
        f("signature", "signature", 0, Form::Hex(2)).fixed(),
        f("date_yymmdd", "made (YYMMDD)", 2, Form::Text(6)).fixed(),
        f("percent_used_field", "life used, field in %", 8, Form::Be(1)).counts(),
        f("feature_revision", "feature revision", 11, Form::Be(1)).fixed(),
        f("generation", "generation", 14, Form::Be(1)).fixed(),
        f("power_ups", "times powered on", 24, Form::Be(3)).counts(),
        f("product", "product", 49, Form::Text(32)).fixed(),
    ],
    check: |_, b| {
        let month_and_day = matches!(b.get("date_yymmdd"), Some(Value::Text(t)) if t.len() == 6
            && (1..=12).contains(&t[2..4].parse().unwrap_or(0u8)) && (1..=31).contains(&t[4..6].parse().unwrap_or(0u8)));
        all_hold(&[(is_digits(b, "date_yymmdd") && month_and_day, "its date is no date")])
    },
    // A field of 1 means 0.0 to 0.99 % used, 100 means 99 to 99.99 %.
    summary: |b| b.life_left_percent = b.number("percent_used_field").filter(|&n| n > 0).map(|used| 101.0 - used as f64),
};

/// Longsys. The check word makes it the one layout that proves itself.
static LONGSYS: Layout = Layout {
    name: "longsys",
    signatures: &[&[0x70, 0x58, 0x32, 0x96]],
    fields: &[
        f("version", "version of the record", 4, Form::Le(4)).fixed(),
        f("factory_bad_blocks", "bad blocks from the factory", 16, Form::Le(4)).fixed(),
        f("grown_bad_blocks", "bad blocks since", 20, Form::Le(4)).counts(),
        f("host_sectors", "sectors of 512 B written by the host", 24, Form::Le(8)).counts(),
        f("spare_blocks", "spare blocks left", 32, Form::Le(4)),
        f("mean_wear_x1000", "mean erases of a block, in thousandths", 36, Form::Le(4)).counts(),
        f("sectors", "sectors in all", 40, Form::Le(4)).fixed(),
        f("life_percent", "life left, %", 44, Form::Le(4)),
        f("writable_gib", "amount that can still be written, GiB", 48, Form::Le(4)),
        f("rated_cycles", "rated program/erase cycles", 52, Form::Le(4)).fixed(),
        f("flash_gib", "written to the flash, GiB", 56, Form::Le(4)).counts().unsure(),
    ],
    check: |block, _| {
        let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let sum = [0, 4, 12, 16, 20, 28, 24, 32, 36, 40].into_iter().fold(0, |x, at| x ^ word(at));
        all_hold(&[(sum == word(8), "its check word does not fit the other words")])
    },
    summary: |b| {
        b.life_left_percent = b.number("life_percent").map(|n| n as f64);
        b.grown_bad_blocks = b.number("grown_bad_blocks");
        b.spare_blocks = b.number("spare_blocks");
        b.mean_erases = b.number("mean_wear_x1000").map(|n| n as f64 / 1000.0);
        b.host_bytes = b.number("host_sectors").and_then(|n| n.checked_mul(512));
        b.flash_bytes = b.number("flash_gib").map(|n| n << 30).filter(|&n| n > 0);
    },
};

const BUS_WIDTH: Form = Form::Coded(&[(0x00, "1"), (0x10, "4")]);
const SPEED_CLASS: Form = Form::Coded(&[(0, "0"), (1, "2"), (2, "4"), (3, "6"), (4, "10")]);

/// Innodisk: one program reads it, no reading was published.
static INNODISK: Layout = Layout {
    name: "innodisk",
    signatures: &[b"LX"],
    fields: &[
        f("bus_width_bits", "bus width, bits", 16, BUS_WIDTH).unsure(),
        f("speed_class", "speed class", 18, SPEED_CLASS).fixed().unsure(),
        f("spare_blocks", "spare blocks", 24, Form::Be(1)).unsure(),
        f("factory_bad_blocks", "bad blocks from the factory", 25, Form::Be(1)).fixed().unsure(),
        f("grown_bad_blocks", "bad blocks since", 26, Form::Be(1)).counts().unsure(),
        f("spare_use_percent", "spare blocks used, %", 27, Form::Be(1)).unsure(),
        f("power_loss_failures", "failures after power loss", 28, Form::Be(4)).counts().unsure(),
        f("min_erases", "erases of a block, least", 32, Form::Be(4)).counts().unsure(),
        f("max_erases", "erases of a block, most", 36, Form::Be(4)).counts().unsure(),
        f("total_erases", "erases in all", 40, Form::Be(4)).counts().unsure(),
        f("avg_erases", "erases of a block, mean", 44, Form::Be(4)).counts().unsure(),
        f("fw_version", "firmware", 53, Form::Text(16)).unsure(),
    ],
    check: |_, b| {
        all_hold(&[
            (ordered(b, "min_erases", "avg_erases", "max_erases"), "its mean erase count lies outside the least and the most"),
            (b.number("spare_use_percent").is_none_or(|p| p <= 100), "more than 100 % of its spare blocks are in use"),
        ])
    },
    summary: |b| {
        b.grown_bad_blocks = b.number("grown_bad_blocks");
        b.spare_blocks = b.number("spare_blocks");
        b.total_erases = b.number("total_erases");
        b.mean_erases = b.number("avg_erases").map(|n| n as f64);
    },
};

/// Silicon Motion SM2706, as ADATA's industrial cards answer.
static ADATA: Layout = Layout {
    name: "adata-sm2706",
    signatures: &[&[0x09, 0x41]],
    fields: &[
        f("signature", "signature", 0, Form::Hex(2)).fixed(),
        f("factory_bad_blocks", "bad blocks from the factory", 24, Form::Be(2)).fixed(),
        f("grown_bad_blocks", "bad blocks since", 26, Form::Be(1)).counts(),
        f("spare_slc_blocks", "spare SLC blocks", 27, Form::Be(1)),
        f("spare_blocks", "spare blocks", 30, Form::Be(2)),
        f("data_min_erases", "data area: erases of a block, least", 32, Form::Be(4)).counts(),
        f("data_max_erases", "data area: erases of a block, most", 36, Form::Be(4)).counts(),
        f("data_total_erases", "data area: erases in all", 40, Form::Be(4)).counts(),
        f("data_avg_erases", "data area: erases of a block, mean", 44, Form::Be(4)).counts(),
        f("system_min_erases", "system area: erases of a block, least", 48, Form::Be(4)).counts(),
        f("system_max_erases", "system area: erases of a block, most", 52, Form::Be(4)).counts(),
        f("system_total_erases", "system area: erases in all", 56, Form::Be(4)).counts(),
        f("system_avg_erases", "system area: erases of a block, mean", 60, Form::Be(4)).counts(),
        f("raw_capacity_mb", "raw capacity, MB", 64, Form::Be(4)).fixed(),
        f("pe_cycle_life_field", "rated cycles, probably in hundreds", 68, Form::Be(2)).fixed().unsure(),
        f("life_percent", "life left, %", 70, Form::Be(1)),
        f("power_ups", "times powered on", 76, Form::Be(4)).counts(),
        f("flash_id", "flash id", 80, Form::Hex(7)).fixed(),
        f("controller", "controller", 88, Form::Text(6)).fixed(),
        f("tlc_read_reclaims", "TLC blocks rewritten because of reads", 96, Form::Be(2)).counts(),
        f("slc_read_reclaims", "SLC blocks rewritten because of reads", 98, Form::Be(2)).counts(),
        f("firmware_block_refreshes", "firmware blocks refreshed", 100, Form::Be(2)).counts(),
        f("tlc_read_threshold", "reads until a TLC block is rewritten", 104, Form::Be(4)),
        f("slc_read_threshold", "reads until an SLC block is rewritten", 108, Form::Be(4)),
        f("fw_version", "firmware", 128, Form::Text(6)),
        f("tlc_refreshes", "TLC blocks refreshed", 136, Form::Be(4)).counts(),
        // Both programs join bytes 140, 141, 143 and 144; the published values are below 256 and sit in byte 144.
        f("slc_refreshes", "SLC blocks refreshed", 144, Form::Be(1)).unsure(),
    ],
    check: |_, b| {
        all_hold(&[
            (
                ordered(b, "data_min_erases", "data_avg_erases", "data_max_erases"),
                "its mean erase count lies outside the least and the most",
            ),
            (
                ordered(b, "system_min_erases", "system_avg_erases", "system_max_erases"),
                "its system area's mean erase count lies outside the least and the most",
            ),
        ])
    },
    summary: |b| {
        b.life_left_percent = b.number("life_percent").map(|n| n as f64);
        b.grown_bad_blocks = b.number("grown_bad_blocks");
        b.spare_blocks = b.number("spare_blocks");
        b.total_erases = b.number("data_total_erases");
        b.mean_erases = b.number("data_avg_erases").map(|n| n as f64);
    },
};

/// Transcend with Silicon Motion SM2707. Cards below 8 GB use other offsets.
static TRANSCEND: Layout = Layout {
    name: "transcend",
    signatures: &[b"Tr"],
    fields: &[
        f("signature", "signature", 0, Form::Hex(2)).fixed(),
        f("secured_mode", "secured mode", 11, Form::Be(1)).unsure(),
        f("bus_width_bits", "bus width, bits", 16, BUS_WIDTH),
        f("speed_class", "speed class", 18, SPEED_CLASS).fixed(),
        f("uhs_grade", "UHS grade", 19, Form::Be(1)).fixed(),
        f("new_bad_blocks", "bad blocks since", 26, Form::Be(1)).counts(),
        f("spare_blocks", "spare blocks left", 27, Form::Be(1)),
        f("abnormal_power_offs", "abnormal power losses", 28, Form::Le(4)).counts(),
        f("min_erases", "erases of a block, least", 32, Form::Le(4)).counts(),
        f("max_erases", "erases of a block, most", 36, Form::Le(4)).counts(),
        f("total_erases", "erases in all", 40, Form::Le(4)).counts().unsure(),
        f("avg_erases", "erases of a block, mean", 44, Form::Le(4)).counts(),
        f("life_percent", "life left, %", 70, Form::Be(1)),
        f("write_crc_errors", "CRC errors of writes", 72, Form::Be(4)).counts().unsure(),
        f("power_ups_field", "times powered on", 76, Form::Be(2)).unsure(),
        f("flash_id", "flash id", 80, Form::Hex(6)).fixed(),
        f("controller", "controller", 87, Form::Text(7)).fixed(),
        f("fw_version", "firmware", 128, Form::Text(6)),
    ],
    check: |_, b| {
        all_hold(&[(ordered(b, "min_erases", "avg_erases", "max_erases"), "its mean erase count lies outside the least and the most")])
    },
    summary: |b| {
        b.life_left_percent = b.number("life_percent").map(|n| n as f64);
        b.grown_bad_blocks = b.number("new_bad_blocks");
        b.spare_blocks = b.number("spare_blocks");
        b.mean_erases = b.number("avg_erases").map(|n| n as f64);
    },
};

/// Micron i400.
static MICRON: Layout = Layout {
    name: "micron",
    signatures: &[b"ME"],
    fields: &[
        f("step_percent", "step, %", 7, Form::Be(1)).fixed(),
        f("tlc_used_steps", "TLC area used, steps", 8, Form::Be(1)).counts(),
        f("slc_used_steps", "SLC area used, steps", 9, Form::Be(1)).counts(),
    ],
    check: |_, b| all_hold(&[(b.number("step_percent").is_some_and(|n| (1..=100).contains(&n)), "its step is no percentage")]),
    summary: |b| {
        let used = b.number("tlc_used_steps").max(b.number("slc_used_steps"));
        b.life_left_percent = b.number("step_percent").zip(used).map(|(step, n)| 100.0 - (step * n) as f64);
    },
};

const BUS_SPEED: Form = Form::Coded(&[
    (0x00, "default speed"),
    (0x01, "high speed"),
    (0x10, "SDR12"),
    (0x11, "SDR25"),
    (0x12, "SDR50"),
    (0x14, "DDR50"),
    (0x18, "SDR104"),
]);

/// Swissbit, by the maker's own document.
static SWISSBIT: Layout = Layout {
    name: "swissbit",
    signatures: &[b"Sw"],
    fields: &[
        f("signature", "signature", 0, Form::Hex(2)).fixed(),
        f("fw_version", "firmware", 32, Form::Text(16)),
        f("user_rated_cycles", "user area: rated cycles", 48, Form::Be(4)).fixed(),
        f("user_max_cycles", "user area: erases of a block, most", 52, Form::Be(4)).counts(),
        f("user_total_cycles", "user area: erases in all", 56, Form::Be(4)).counts(),
        f("user_avg_cycles", "user area: erases of a block, mean", 60, Form::Be(4)).counts(),
        f("system_max_cycles", "system area: erases of a block, most", 68, Form::Be(4)).counts(),
        f("system_total_cycles", "system area: erases in all", 72, Form::Be(4)).counts(),
        f("system_avg_cycles", "system area: erases of a block, mean", 76, Form::Be(4)).counts(),
        f("life_percent", "life left, %", 80, Form::Be(1)),
        f("speed_mode", "bus speed", 86, BUS_SPEED),
        f("bus_width_bits", "bus width, bits", 87, BUS_WIDTH),
        f("user_spare_blocks", "user area: spare blocks", 88, Form::Be(4)),
        f("system_spare_blocks", "system area: spare blocks", 92, Form::Be(4)),
        f("user_runtime_bad_blocks", "user area: bad blocks since", 96, Form::Be(4)).counts(),
        f("system_runtime_bad_blocks", "system area: bad blocks since", 100, Form::Be(4)).counts(),
        f("user_refreshes", "user area: refreshes", 104, Form::Be(4)).counts(),
        f("system_refreshes", "system area: refreshes", 108, Form::Be(4)).counts(),
        f("interface_crc_errors", "CRC errors of the interface", 112, Form::Be(4)).counts(),
        f("power_ups", "times powered on", 116, Form::Be(4)).counts(),
    ],
    check: |_, b| {
        let below = |a: &str, z: &str| b.number(a) <= b.number(z);
        all_hold(&[
            (below("user_avg_cycles", "user_max_cycles"), "its mean erase count is above the most"),
            (below("system_avg_cycles", "system_max_cycles"), "its system area's mean erase count is above the most"),
        ])
    },
    summary: |b| {
        b.life_left_percent = b.number("life_percent").map(|n| n as f64);
        b.grown_bad_blocks = b.number("user_runtime_bad_blocks").zip(b.number("system_runtime_bad_blocks")).map(|(a, z)| a + z);
        b.spare_blocks = b.number("user_spare_blocks");
        b.total_erases = b.number("user_total_cycles");
        b.mean_erases = b.number("user_avg_cycles").map(|n| n as f64);
    },
};

/// First bytes of the ids of flash chips: Toshiba/Kioxia, SanDisk, Micron, Intel, Samsung, SK Hynix, YMTC, Spansion, ST (JEDEC JEP106).
const FLASH_MAKERS: &[&str] = &["98", "45", "2c", "89", "ec", "ad", "9b", "01", "20"];

/// Phison's controllers: Apacer, Kingston SDCIT, GoodRam, Viofo. The block has no signature; its flash id and the relations between
/// its numbers stand in for one.
pub(super) static PHISON: Layout = Layout {
    name: "phison-two-step",
    signatures: &[],
    fields: &[
        f("flash_id", "flash id", 0, Form::Hex(9)).fixed(),
        f("ic_version", "controller version", 9, Form::Hex(2)).fixed(),
        f("fw_version", "firmware", 11, Form::Hex(2)),
        f("ce_count", "chip enables", 14, Form::Be(1)).fixed(),
        f("spare_blocks", "spare blocks", 16, Form::Be(2)),
        f("factory_bad_blocks", "bad blocks from the factory", 32, Form::Sum(32)).fixed(),
        f("good_block_percent_x100", "good blocks, % x 100", 64, Form::Be(2)),
        f("total_erases", "erases in all", 80, Form::Be(4)).counts(),
        f("life_percent_x100", "life field, % x 100", 96, Form::Be(2)),
        f("avg_erases", "erases of a block, mean", 98, Form::Halves(104)).counts(),
        f("min_erases", "erases of a block, least", 100, Form::Halves(106)).counts(),
        f("max_erases", "erases of a block, most", 102, Form::Halves(108)).counts(),
        f("power_ups", "times powered on", 112, Form::Be(4)).counts(),
        f("abnormal_power_offs", "abnormal power losses", 128, Form::Be(2)).counts(),
        f("refreshes", "refreshes", 160, Form::Be(2)).counts(),
        f("marker", "marker", 176, Form::Hex(8)).fixed(),
        f("later_bad_blocks", "bad blocks since", 184, Form::Sum(32)).counts(),
    ],
    check: |_, b| {
        let maker = matches!(b.get("flash_id"), Some(Value::Text(t)) if FLASH_MAKERS.contains(&&t[..2]));
        all_hold(&[
            (maker, "its first byte is the id of no maker of flash"),
            (b.number("ce_count").is_some_and(|n| (1..=16).contains(&n)), "its number of chip enables is none"),
            (b.number("good_block_percent_x100").is_some_and(|n| n <= 10_000), "it has more than 100 % good blocks"),
            (ordered(b, "min_erases", "avg_erases", "max_erases"), "its mean erase count lies outside the least and the most"),
            (b.number("total_erases") >= b.number("max_erases"), "one of its blocks was erased more often than all together"),
        ])
    },
    summary: |b| {
        b.life_left_percent = b.number("life_percent_x100").map(|n| n as f64 / 100.0);
        b.grown_bad_blocks = b.number("later_bad_blocks");
        b.spare_blocks = b.number("spare_blocks");
        b.total_erases = b.number("total_erases");
        b.mean_erases = b.number("avg_erases").map(|n| n as f64);
    },
};
