//! A price with its currency (G13).

use std::fmt;
use std::str::FromStr;

/// An amount above 0 and what it is of: "5.75 USD".
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub amount: f64,
    pub currency: String,
}

impl FromStr for Price {
    type Err = String;

    /// "5.75 USD", "USD 5.75", "5.75USD".
    fn from_str(s: &str) -> Result<Price, String> {
        let t = s.trim();
        let digit = |c: char| c.is_ascii_digit() || c == '.';
        let from = t.find(digit).ok_or_else(|| format!("'{s}' is no price; write for example \"5.75 USD\""))?;
        let to = t[from..].find(|c| !digit(c)).map_or(t.len(), |n| from + n);
        let amount = t[from..to].parse::<f64>().ok().filter(|a| a.is_finite() && *a > 0.0);
        let amount = amount.ok_or_else(|| format!("'{s}': a price is a number above 0, for example \"5.75 USD\""))?;
        let currency = match (t[..from].trim(), t[to..].trim()) {
            ("", "") => return Err(format!("'{s}' has no currency; write for example \"{} USD\"", &t[from..to])),
            (c, "") | ("", c) if c.chars().count() <= 8 && !c.contains(|c: char| c == '-' || c.is_ascii_digit()) => c,
            _ => return Err(format!("'{s}' is no price; write one number and its currency, for example \"5.75 USD\"")),
        };
        Ok(Price { amount, currency: if currency.is_ascii() { currency.to_uppercase() } else { currency.into() } })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_a_currency() {
        for (text, amount, currency) in [("5.75 USD", 5.75, "USD"), ("40eur", 40.0, "EUR"), ("USD 12", 12.0, "USD"), ("3 €", 3.0, "€")]
        {
            assert_eq!(text.parse(), Ok(Price { amount, currency: currency.into() }), "{text}");
        }
        for text in ["40", "5.75", "USD", "", "-5 USD", "0 EUR", "1.2.3 USD", "5 USD 3", "nan USD"] {
            assert!(text.parse::<Price>().is_err(), "{text}");
        }
        assert!("40".parse::<Price>().unwrap_err().contains("40 USD"));
    }
}
