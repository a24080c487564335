//! What a USB reader or stick says about itself. The registers of a card behind it stay hidden.
//!
//! Fields: USB device descriptor (idVendor, idProduct, bcdDevice and the three strings) and the SCSI INQUIRY strings, as sysfs
//! gives them. Vendor names are those of the public usb.ids list.

use super::attributes::Attributes;
use serde::{Deserialize, Serialize};

/// Identity of a USB mass-storage device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbIdentity {
    /// idVendor.
    pub vendor_id: u16,
    /// idProduct.
    pub product_id: u16,
    /// bcdDevice, the release number, as four digits.
    pub release: Option<String>,
    /// Manufacturer string.
    pub manufacturer: Option<String>,
    /// Product string.
    pub product: Option<String>,
    /// Serial number string. None where there is none or where it was left out on purpose.
    pub serial: Option<String>,
    /// Bus speed in Mbit/s, as sysfs gives it.
    pub speed: Option<String>,
    /// SCSI INQUIRY vendor and model.
    pub inquiry: Option<String>,
    /// True where a name speaks of a card reader.
    pub looks_like_reader: bool,
}

/// Makers of sticks, readers and their controllers, from usb.ids.
const VENDORS: &[(u16, &str)] = &[
    (0x0424, "Microchip (SMSC)"),
    (0x04e8, "Samsung"),
    (0x058f, "Alcor Micro"),
    (0x05e3, "Genesys Logic"),
    (0x0781, "SanDisk"),
    (0x090c, "Silicon Motion"),
    (0x0930, "Toshiba"),
    (0x0951, "Kingston"),
    (0x0bda, "Realtek"),
    (0x125f, "A-DATA"),
    (0x13fe, "Phison (sold under several brands)"),
    (0x14cd, "Super Top"),
    (0x154b, "PNY"),
    (0x18a5, "Verbatim"),
    (0x1b1c, "Corsair"),
    (0x8564, "Transcend"),
];

impl UsbIdentity {
    /// From attributes; None without idVendor and idProduct.
    pub fn from_attributes(a: &Attributes) -> Option<UsbIdentity> {
        let text = |name| a.get(name).map(str::to_string);
        let inquiry = [a.get("vendor"), a.get("model")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let names = [a.get("manufacturer").unwrap_or(""), a.get("product").unwrap_or(""), &inquiry].join(" ").to_ascii_lowercase();
        Some(UsbIdentity {
            vendor_id: u16::try_from(a.hex_number("idVendor")?).ok()?,
            product_id: u16::try_from(a.hex_number("idProduct")?).ok()?,
            release: text("bcdDevice"),
            manufacturer: text("manufacturer"),
            product: text("product"),
            serial: text("serial"),
            speed: text("speed"),
            inquiry: Some(inquiry).filter(|i| !i.is_empty()),
            looks_like_reader: ["reader", "card", "sd/mmc", "sd/ms", "multi", "compact flash", "cf/"].iter().any(|w| names.contains(w)),
        })
    }

    /// The vendor by its id, where the table knows it.
    pub fn vendor(&self) -> Option<&'static str> {
        VENDORS.iter().find(|(id, _)| *id == self.vendor_id).map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_and_stick() {
        let mut a = Attributes::default();
        for (name, value) in
            [("idVendor", "05e3"), ("idProduct", "0751"), ("product", "USB Storage"), ("vendor", "Generic"), ("model", "SD/MMC")]
        {
            a.add(name, value);
        }
        let reader = UsbIdentity::from_attributes(&a).unwrap();
        assert_eq!((reader.vendor_id, reader.product_id, reader.vendor()), (0x05e3, 0x0751, Some("Genesys Logic")));
        assert_eq!((reader.inquiry.as_deref(), reader.looks_like_reader), (Some("Generic SD/MMC"), true));
        let mut a = Attributes::default();
        [("idVendor", "0781"), ("idProduct", "5581"), ("product", "Ultra")].iter().for_each(|(n, v)| assert!(a.add(n, v)));
        let stick = UsbIdentity::from_attributes(&a).unwrap();
        assert_eq!((stick.vendor(), stick.looks_like_reader, stick.inquiry), (Some("SanDisk"), false, None));
        assert!(UsbIdentity::from_attributes(&Attributes::default()).is_none());
    }
}
