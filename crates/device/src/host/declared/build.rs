//! From registers and attributes to what is declared: decoded, held against each other, and what does not fit said.

use super::*;
use crate::host::quirks;
use crate::host::registers::attributes::number;
use crate::host::registers::cid::{CidLayout, likely, oem_text};
use crate::host::registers::csd::{self, CsdLayout};
use crate::host::registers::{makers, parse_array};
use crate::units::Bytes;

/// The registers among the attributes, and those that could not be read.
pub(in crate::host) fn registers(a: &Attributes) -> (RawRegisters, Vec<RegisterError>) {
    fn one<const N: usize>(a: &Attributes, name: &'static str, label: &'static str, bad: &mut Vec<RegisterError>) -> Option<[u8; N]> {
        match parse_array(label, a.get(name)?) {
            Ok(bytes) => Some(bytes),
            Err(problem) => {
                bad.push(problem);
                None
            }
        }
    }
    let mut bad = vec![];
    let kind = match a.get("type") {
        Some("SD") => Some(Kind::Sd),
        Some("MMC") => Some(Kind::Mmc),
        _ => None,
    };
    let raw = RawRegisters {
        kind,
        cid: one(a, "cid", "CID", &mut bad),
        csd: one(a, "csd", "CSD", &mut bad),
        scr: one(a, "scr", "SCR", &mut bad),
        ssr: one(a, "ssr", "SSR", &mut bad),
        ext_csd: a.ext_csd().unwrap_or_else(|problem| {
            bad.push(problem);
            None
        }),
    };
    (raw, bad)
}

pub(in crate::host) struct Builder {
    pub raw: RawRegisters,
    pub attributes: Attributes,
    pub today: Date,
    pub read_from: BTreeMap<String, String>,
}

impl Builder {
    fn kind(&self) -> Kind {
        let (raw, a) = (&self.raw, &self.attributes);
        if let Some(kind) = raw.kind {
            kind
        } else if raw.ssr.is_some() || raw.scr.is_some() {
            Kind::Sd
        } else if raw.ext_csd.is_some() || a.get("life_time").is_some() || a.get("pre_eol_info").is_some() {
            Kind::Mmc
        } else if let Some(csd) = &raw.csd {
            if csd::looks_like_sd(csd) { Kind::Sd } else { Kind::Mmc }
        } else if let Some(cid) = &raw.cid {
            if likely(cid, self.today).0 == CidLayout::Mmc { Kind::Mmc } else { Kind::Sd }
        } else if a.get("manfid").is_some() {
            Kind::Sd
        } else if a.get("idVendor").is_some() {
            Kind::Usb
        } else {
            Kind::Other
        }
    }

    pub fn build(self, mut warnings: Vec<String>) -> Declared {
        let (kind, raw, a, today) = (self.kind(), &self.raw, &self.attributes, self.today);
        let sd = kind == Kind::Sd;
        let csd = raw.csd.as_ref().map(|r| if sd { Csd::sd(r) } else { Csd::mmc(r) });
        let scr = raw.scr.as_ref().filter(|_| sd).map(Scr::decode);
        let ssr = raw.ssr.as_ref().filter(|_| sd).map(|r| Ssr::decode(r, scr.as_ref().map(|s| s.spec3)));
        let ext_csd = raw.ext_csd.as_ref().filter(|_| !sd).map(ExtCsd::decode);
        let attribute = a.number("rev").filter(|_| kind == Kind::Mmc).and_then(|n| u8::try_from(n).ok());
        let rev = ext_csd.as_ref().and_then(|e| e.rev).or(attribute);
        let spec_vers = csd.as_ref().and_then(|c| c.spec_vers);
        let mut cid = raw.cid.as_ref().map(|r| if sd { Cid::sd(r) } else { Cid::mmc(r, spec_vers, rev, today) });
        if let (Some(cid), Some(date)) = (&mut cid, a.get("date").and_then(date)) {
            settle_year(cid, date);
        }
        if sd && raw.ext_csd.is_some() {
            warnings.push("an SD card has no EXT_CSD: left out".into());
        }
        if !sd && (raw.scr.is_some() || raw.ssr.is_some()) {
            warnings.push("SCR and SSR belong to SD cards, and this is none: left out".into());
        }
        for found in [
            cid.as_ref().map(|c| c.suspicions(today)),
            cid.as_ref().zip(rev).and_then(|(c, rev)| older_than_its_standard(c.date, rev)).map(|text| vec![text]),
            csd.as_ref().map(Csd::findings),
            scr.as_ref().map(|s| s.irregular.clone()),
            ssr.as_ref().map(Ssr::findings),
            ext_csd.as_ref().zip(raw.ext_csd.as_ref()).map(|(e, bytes)| e.findings(bytes)),
        ] {
            warnings.extend(found.into_iter().flatten());
        }
        let usb = if kind == Kind::Usb { UsbIdentity::from_attributes(a) } else { None };
        let user_area = ext_csd.as_ref().and_then(|e| e.user_area);
        let health = health(a, ext_csd.as_ref(), &mut warnings);
        let mut d = Declared {
            kind,
            device: a.device.clone(),
            name: None,
            maker: None,
            ids: None,
            date: None,
            serial: None,
            capacity: user_area.or_else(|| csd.as_ref().and_then(|c| c.capacity)),
            device_size: a.number("size").and_then(|sectors| sectors.checked_mul(512)),
            csd,
            scr,
            ssr,
            ext_csd,
            usb,
            declared_au: None,
            preferred_erase_size: None,
            erase_size: a.number("erase_size"),
            health,
            troubles: cid.as_ref().map_or(vec![], |c| quirks::known(kind, c, rev)),
            cid,
            health_block: None,
            read_from: self.read_from.clone(),
            notes: a.remarks.clone(),
            warnings,
        };
        if let (None, None, Some(cid)) = (raw.kind, &d.csd, &raw.cid)
            && d.scr.is_none()
            && d.ssr.is_none()
            && d.ext_csd.is_none()
            && let (layout, Some(why)) = likely(cid, today)
            && (layout == CidLayout::Sd) == sd
        {
            d.notes.push(if layout == CidLayout::Sd { format!("{why}: if it is one, --bus mmc reads it so") } else { why });
        }
        d.drop_undeclared();
        d.identify(a);
        d.compare(a);
        d.units(a);
        d.advise();
        d
    }
}

/// Codes that no year of the standard is meant by: some makers count them in another way.
fn older_than_its_standard(made: Date, rev: u8) -> Option<String> {
    let (version, year) = match rev {
        6 => ("4.5", 2011),
        7 => ("5.0", 2013),
        8 => ("5.1", 2015),
        _ => return None,
    };
    (made.year < year).then(|| {
        format!("CID production date {made} is older than eMMC {version} of {year} (EXT_CSD revision {rev}): suspicious, or the maker counts years in another way")
    })
}

/// `03/2013`.
fn date(text: &str) -> Option<Date> {
    let (month, year) = text.split_once('/')?;
    Some(Date { year: year.trim().parse().ok()?, month: month.trim().parse().ok()? })
}

/// The kernel has seen the EXT_CSD and knows which of the possible years is meant.
fn settle_year(cid: &mut Cid, kernel: Date) {
    if kernel.month == cid.date.month && cid.other_years.contains(&kernel.year) {
        cid.date = kernel;
    }
    if kernel == cid.date {
        cid.other_years.clear();
    }
}

fn health(a: &Attributes, ext_csd: Option<&ExtCsd>, warnings: &mut Vec<String>) -> Option<Health> {
    let from_register = ext_csd.map(|e| Health { life_a: e.life_a, life_b: e.life_b, pre_eol: e.pre_eol });
    if let Some(h) = from_register.filter(|h| h.life_a.is_some() || h.life_b.is_some() || h.pre_eol.is_some()) {
        return Some(h);
    }
    let code = |text: &str| number(text).and_then(|n| u8::try_from(n).ok());
    let mut lives = a.get("life_time").unwrap_or("").split_whitespace().map(code);
    let health = Health {
        life_a: lives.next().flatten().map(Into::into),
        life_b: lives.next().flatten().map(Into::into),
        pre_eol: a.get("pre_eol_info").and_then(code).map(Into::into),
    };
    for (name, life) in [("A", health.life_a), ("B", health.life_b)] {
        match life {
            Some(LifeTime::Reserved { code }) => {
                warnings.push(format!("life_time {name} is {code:#04x}, which is reserved: not a health value"));
            }
            Some(LifeTime::Exceeded) => warnings.push(format!("life_time {name}: the estimated life is exceeded")),
            _ => {}
        }
    }
    match health.pre_eol {
        Some(PreEol::Reserved { code }) => warnings.push(format!("pre_eol_info is {code:#04x}, which is reserved: not a health value")),
        Some(state @ (PreEol::Warning | PreEol::Urgent)) => warnings.push(format!("pre_eol_info: {state}")),
        _ => {}
    }
    (health.life_a.is_some() || health.life_b.is_some() || health.pre_eol.is_some()).then_some(health)
}

impl Declared {
    /// The kernel's rows name makers: it acts on one only where the card declares what the row calls broken.
    fn drop_undeclared(&mut self) {
        let Some(ssr) = self.ssr.as_ref().filter(|s| !s.is_blank()) else { return };
        for (quirk, declared, what) in [("BROKEN_SD_DISCARD", ssr.discard, "discard"), ("BROKEN_SD_CACHE", ssr.cache, "a cache")] {
            if !declared && self.troubles.iter().any(|t| t.quirk == quirk) {
                self.troubles.retain(|t| t.quirk != quirk);
                self.notes.push(format!("the kernel's row {quirk} matches this maker; this card does not declare {what}"));
            }
        }
    }

    fn identify(&mut self, a: &Attributes) {
        let text = |name| a.get(name).map(str::to_string);
        if let Some(usb) = &self.usb {
            self.name = usb.product.clone().or_else(|| usb.inquiry.clone());
            self.maker = usb.manufacturer.clone().or_else(|| usb.vendor().map(str::to_string));
            self.ids = Some(format!("{:04x}:{:04x}", usb.vendor_id, usb.product_id));
            self.serial = usb.serial.clone();
            return;
        }
        if let Some(cid) = &self.cid {
            self.name = Some(cid.name.clone());
            self.maker = cid.maker.clone();
            self.ids = Some(format!("{:#04x}/{}", cid.manfid, cid.oem()));
            self.date = Some(cid.date);
            self.serial = cid.serial.map(|s| format!("{s:#010x}"));
            return;
        }
        self.name = text("name").or_else(|| text("product")).or_else(|| text("model"));
        self.date = a.get("date").and_then(date);
        self.serial = text("serial");
        if matches!(self.kind, Kind::Sd | Kind::Mmc) {
            let manfid = a.number("manfid").and_then(|n| u8::try_from(n).ok());
            let table = if self.kind == Kind::Sd { makers::sd } else { makers::mmc };
            self.maker = manfid.and_then(table).map(|m| m.name.to_string()).or_else(|| text("manufacturer"));
            let oem = a.get("oemid").map(|t| number(t).and_then(|n| oem_text(n as u16)).map_or(t.to_string(), |o| format!("{t} \"{o}\"")));
            self.ids = manfid.map(|m| format!("{m:#04x}/{}", oem.as_deref().unwrap_or("?")));
        } else {
            self.maker = text("manufacturer").or_else(|| text("vendor").filter(|v| !v.starts_with("0x")));
        }
    }

    /// Values given twice that do not agree, and registers that do not fit each other.
    fn compare(&mut self, a: &Attributes) {
        let mut found = vec![];
        if let Some(cid) = &self.cid {
            let printed = |text: &str| oem_text(cid.oemid).is_some_and(|o| o == text);
            // Some kernels leave the device type bits out of the OEM id of an eMMC.
            let short = (cid.layout == CidLayout::Mmc).then_some(u64::from(cid.oemid & 0xff));
            for (name, same) in [
                ("manfid", a.number("manfid").is_none_or(|n| n == u64::from(cid.manfid))),
                ("oemid", a.get("oemid").is_none_or(|t| number(t).map_or(printed(t), |n| n == u64::from(cid.oemid) || short == Some(n)))),
                ("name", a.get("name").is_none_or(|n| n == cid.name || cid.name.contains("\\x"))),
                ("date", a.get("date").and_then(date).is_none_or(|d| d == cid.date || cid.other_years.contains(&d.year))),
                ("serial", a.number("serial").zip(cid.serial).is_none_or(|(n, s)| n == u64::from(s))),
            ] {
                if !same {
                    found.push(format!("the attribute {name} is not the one in the CID: lines of two cards mixed?"));
                }
            }
        }
        if let (Some(capacity), Some(size)) = (self.capacity, self.device_size)
            && capacity != size
            && !self.csd.as_ref().is_some_and(|c| c.layout == CsdLayout::SdReserved)
        {
            found.push(format!("the registers say {capacity} bytes, the block device has {size}"));
        }
        if let (Some(cid), Some(csd)) = (&self.cid, &self.csd)
            && cid.layout == CidLayout::Sd
            && csd.layout == CsdLayout::SdV2
            && let Some(reason) = csd.capacity.and_then(|c| erase::too_old_for_capacity(c, cid.date))
        {
            found.push(format!("CID says made in {}, but {reason}: suspicious", cid.date));
        }
        if let (Some(ssr), Some(scr)) = (&self.ssr, &self.scr) {
            let old = scr.spec.as_deref().filter(|s| *s < "5");
            if let (Some(spec), true) = (old, ssr.video_class > 0 || ssr.app_class > 0) {
                found.push(format!(
                    "SD status declares {}, but V and A classes came with specification 5 and the SCR says {spec}",
                    ssr.marks()
                ));
            } else if ssr.uhs_grade > 0 && !scr.spec3 {
                found.push(format!("SD status declares {}, but UHS came with specification 3 and the SCR does not say so", ssr.marks()));
            }
        }
        self.warnings.append(&mut found);
    }

    fn units(&mut self, a: &Attributes) {
        let preferred = a.number("preferred_erase_size").filter(|&b| b > 0);
        let csd_unit = self.csd.as_ref().and_then(|c| c.erase_unit);
        match self.kind {
            Kind::Sd => {
                self.preferred_erase_size = preferred.map(|b| {
                    let usable = self.ssr.as_ref();
                    erase::sd(b, usable, self.capacity.or(self.device_size), csd_unit)
                });
                self.declared_au = match (&self.ssr, &self.preferred_erase_size) {
                    (Some(ssr), _) => ssr
                        .au
                        .bytes
                        .filter(|_| !ssr.is_blank())
                        .map(|bytes| DeclaredAu { bytes, source: format!("SSR AU_SIZE code {}", ssr.au.code) }),
                    (None, Some(PreferredErase { bytes, is_kernel_guess: Some(false), .. })) => {
                        Some(DeclaredAu { bytes: *bytes, source: "preferred_erase_size, which is not the kernel's guess here".into() })
                    }
                    _ => None,
                };
            }
            Kind::Mmc => {
                let ext_csd = self.ext_csd.as_ref();
                let group = ext_csd.and_then(|e| e.erase_group).filter(|_| ext_csd.and_then(|e| e.high_capacity_groups) != Some(false));
                self.declared_au = group
                    .map(|bytes| DeclaredAu { bytes, source: "EXT_CSD HC_ERASE_GRP_SIZE".into() })
                    .or_else(|| self.erase_size.map(|bytes| DeclaredAu { bytes, source: "the kernel's erase_size (erase group)".into() }))
                    .or_else(|| csd_unit.map(|bytes| DeclaredAu { bytes, source: "CSD erase group".into() }));
                // Linux switches the high-capacity groups on and rounds to what it then uses.
                let rounding = self.erase_size.or(ext_csd.and_then(|e| e.erase_group)).or(csd_unit);
                // The kernel guesses by the capacity in the CSD, which stands at 1 GiB or more where the EXT_CSD has the real one.
                let by_csd = self.csd.as_ref().map(|c| c.capacity.unwrap_or(1 << 30));
                let capacity = by_csd.or(self.capacity).or(self.device_size);
                self.preferred_erase_size = preferred.map(|b| erase::mmc(b, capacity, rounding));
            }
            Kind::Usb | Kind::Other => {}
        }
    }

    fn advise(&mut self) {
        let mut say = |text: String| self.notes.push(text);
        match self.kind {
            Kind::Usb => {
                let what = if self.usb.as_ref().is_some_and(|u| u.looks_like_reader) { "a card reader" } else { "a stick or reader" };
                say(format!(
                    "{what} on USB: the registers of what is behind it (CID, CSD, SSR, EXT_CSD) cannot be read; this is the \
                     identity of the USB device, not of a card"
                ));
            }
            Kind::Other => say("this target has no card registers: nothing is declared".into()),
            Kind::Sd if self.declared_au.is_some() => {
                say("an AU is what the card asks hosts to work in, not proof of its erase block".into());
                if self.scr.is_none() && self.ssr.as_ref().is_some_and(|s| s.au.code > 9) {
                    say("AU codes above 9 count only when the SCR says specification 3, and the SCR is not at hand".into());
                }
            }
            Kind::Sd if self.ssr.is_none() => say("without the SD status (ssr) the AU and the speed marks are unknown".into()),
            Kind::Sd => {}
            Kind::Mmc => {
                if let Some((au, protect)) =
                    self.declared_au.as_ref().zip(self.ext_csd.as_ref().and_then(|e| e.write_protect_group)).filter(|(au, p)| au.bytes < *p)
                {
                    let (au, protect) = (Bytes(au.bytes), Bytes(protect));
                    say(format!(
                        "the erase group of {au} may be a choice of the firmware; the write-protect group of {protect} can be closer to \
                         the flash"
                    ));
                } else if self.declared_au.is_some() {
                    say("an erase group is what the device lets hosts erase, not proof of its erase block".into());
                }
            }
        }
        if let Some(cid) = self.cid.as_ref().filter(|c| !c.other_years.is_empty()) {
            let years: Vec<String> = cid.other_years.iter().map(u16::to_string).collect();
            self.notes.push(format!("the year code of the CID can also mean {}", years.join(" or ")));
        }
    }
}
