//! A price with its currency (G13). Prices of different currencies are never compared.

use std::fmt;
use std::str::FromStr;

/// An amount, and the code of its currency: "5.75 USD".
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub amount: f64,
    pub currency: String,
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Price, String> {
        parse(text).map(|(amount, currency)| Price { amount, currency })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

/// An amount, and the code of its currency in capital letters.
///
/// # Errors
/// What is no price, and how one is written.
pub fn parse(text: &str) -> Result<(f64, String), String> {
    let t = text.trim();
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let from = t.find(digits);
    let (before, rest) = t.split_at(from.unwrap_or(t.len()));
    let (number, after) = rest.split_at(rest.find(|c| !digits(c)).unwrap_or(rest.len()));
    let amount = number.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    let unit = match (before.trim(), after.trim()) {
        (one, "") | ("", one) => one,
        _ => "?",
    };
    let code = match unit {
        "$" => "USD".to_string(),
        "€" => "EUR".into(),
        "£" => "GBP".into(),
        u => u.to_uppercase(),
    };
    match amount {
        Some(v) if code.len() == 3 && code.chars().all(|c| c.is_ascii_uppercase()) => Ok((v, code)),
        Some(v) if unit.is_empty() => Err(format!("'{text}' has no currency; write for example '{v} EUR'")),
        _ => Err(format!("'{text}' is no price; write an amount and its currency, for example '5.75 USD'")),
    }
}

/// The name under which a price is kept with the figures: "price-usd".
pub fn key(code: &str) -> String {
    format!("price-{}", code.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices() {
        for (text, amount, code) in [
            ("5.75 USD", 5.75, "USD"),
            ("5.75usd", 5.75, "USD"),
            ("EUR 12", 12.0, "EUR"),
            ("$5", 5.0, "USD"),
            ("7 €", 7.0, "EUR"),
            ("£3.5", 3.5, "GBP"),
        ] {
            assert_eq!(parse(text), Ok((amount, code.into())), "{text}");
            let price: Price = text.parse().unwrap();
            assert_eq!(price.to_string().parse(), Ok(price.clone()), "{text}");
        }
        for (text, says) in [
            ("5", "no currency"),
            ("cheap", "is no price"),
            ("", "is no price"),
            ("1 2 EUR", "is no price"),
            ("-5 EUR", "is no price"),
            ("5 euros", "is no price"),
            ("1.2.3 USD", "is no price"),
            ("nan USD", "is no price"),
        ] {
            assert!(parse(text).unwrap_err().contains(says), "{text}: {:?}", parse(text));
        }
    }
}
