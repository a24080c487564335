//! From tokens to a pattern. Names are checked here, so that a misspelt one is found even in a loop that runs no time.

use crate::flashbench::Failure;

use super::lex::{Token, tokens};
use super::{At, Data, Expr, How, Item, Order, Param, Pattern, Reduce, Statement, Steps, Verb};

/// Blocks and brackets inside each other.
const DEPTH: u32 = 32;
/// Terms of one sum or product: each is a level of the tree that is made of it.
const TERMS: usize = 256;
const WORDS: [&str; 29] = [
    "prepare",
    "param",
    "let",
    "for",
    "in",
    "repeat",
    "read",
    "write",
    "discard",
    "flush",
    "wait",
    "print",
    "newline",
    "mean",
    "min",
    "max",
    "median",
    "total",
    "rate",
    "time",
    "size",
    "number",
    "halves",
    "doubles",
    "step",
    "at",
    "shuffled",
    "backwards",
    "when",
];

type Got<T> = Result<T, (At, String)>;

struct Parser {
    tokens: Vec<(Token, At)>,
    next: usize,
    names: Vec<String>,
    params: Vec<Param>,
    depth: u32,
}

pub(super) fn pattern(name: &str, text: &str) -> Result<Pattern, Failure> {
    let wrong = |(at, what): (At, String)| Failure::Wrong { name: name.into(), line: at.line, column: at.column, what };
    let mut p = Parser { tokens: tokens(text).map_err(wrong)?, next: 0, names: vec![], params: vec![], depth: 0 };
    let mut body = vec![];
    while *p.peek() != Token::End {
        if p.eat_word("param") {
            p.param(&body).map_err(wrong)?;
        } else {
            body.push(p.statement().map_err(wrong)?);
        }
    }
    Ok(Pattern { name: name.into(), params: p.params, body })
}

/// The value of a number such as "4194304", "4MiB", "4*1024*1024", "$[4 * 1024 * 1024]" or "$((1<<22))": what shells leave of
/// the sizes that people give to flashbench.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn expression(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let inner = t.strip_prefix("$[").and_then(|r| r.strip_suffix(']')).or(t.strip_prefix("$((").and_then(|r| r.strip_suffix("))")));
    let wrong = |what: String| format!("'{text}' is not a number: {what}; write for example 4194304 or 4MiB");
    let tokens = tokens(inner.unwrap_or(t)).map_err(|e| wrong(e.1))?;
    let mut p = Parser { tokens, next: 0, names: vec![], params: vec![], depth: 0 };
    let e = p.expr().map_err(|e| wrong(e.1))?;
    if *p.peek() != Token::End {
        return Err(wrong(format!("{} follows", p.shown())));
    }
    let v = super::walk::value(&e, &|_| None).map_err(|e| wrong(e.1))?;
    u64::try_from(v).ok().filter(|v| *v < 1 << 63).ok_or_else(|| wrong("it lies outside 0 to 2^63".into()))
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> At {
        self.tokens[self.next].1
    }

    fn shown(&self) -> String {
        match self.peek() {
            Token::Word(w) => format!("'{w}'"),
            Token::Number(n) => format!("'{n}'"),
            Token::Text(t) => format!("\"{t}\""),
            Token::Sign(s) => format!("'{s}'"),
            Token::End => "the end".into(),
        }
    }

    fn step(&mut self) -> Token {
        let t = self.tokens[self.next].0.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        t
    }

    fn eat(&mut self, sign: &str) -> bool {
        let yes = matches!(self.peek(), Token::Sign(s) if *s == sign);
        if yes {
            self.step();
        }
        yes
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let yes = matches!(self.peek(), Token::Word(w) if w == word);
        if yes {
            self.step();
        }
        yes
    }

    fn want(&mut self, sign: &str) -> Got<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("'{sign}'")) }
    }

    fn want_word(&mut self, word: &str) -> Got<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("'{word}'")) }
    }

    fn expected<T>(&self, what: &str) -> Got<T> {
        Err((self.at(), format!("expected {what}, found {}", self.shown())))
    }

    fn name(&mut self) -> Got<String> {
        let at = self.at();
        match self.step() {
            Token::Word(w) if WORDS.contains(&w.as_str()) => Err((at, format!("'{w}' is a word of the language; choose another name"))),
            Token::Word(w) => Ok(w),
            _ => {
                self.next -= 1;
                self.expected("a name")
            }
        }
    }

    fn param(&mut self, body: &[Statement]) -> Got<()> {
        let at = self.at();
        if !body.is_empty() {
            return Err((at, "parameters stand before everything else".into()));
        }
        let name = self.name()?;
        if self.names.contains(&name) {
            return Err((at, format!("there is already a '{name}'")));
        }
        self.want("=")?;
        let value = self.expr()?;
        self.names.push(name.clone());
        self.params.push(Param { name, value, at });
        Ok(())
    }

    fn block(&mut self) -> Got<Vec<Statement>> {
        let at = self.at();
        self.want("{")?;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err((at, format!("more than {DEPTH} blocks inside each other")));
        }
        let known = self.names.len();
        let mut body = vec![];
        while !self.eat("}") {
            if *self.peek() == Token::End {
                return Err((at, "this '{' is never closed".into()));
            }
            body.push(self.statement()?);
        }
        self.names.truncate(known);
        self.depth -= 1;
        Ok(body)
    }

    fn statement(&mut self) -> Got<Statement> {
        let at = self.at();
        let word = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.expected("a statement"),
        };
        if let Some(how) = how(&word) {
            self.step();
            return Ok(Statement::Reduce(Reduce { how, body: self.block()?, at }));
        }
        self.step();
        Ok(match word.as_str() {
            "let" => {
                let name = self.name()?;
                self.want("=")?;
                let value = self.expr()?;
                self.names.push(name.clone());
                Statement::Let { name, value }
            }
            "for" => self.for_loop(at)?,
            "repeat" => Statement::Repeat { times: self.expr()?, body: self.block()?, at },
            "read" => self.access(Verb::Read, at)?,
            "write" => {
                let data = match self.peek() {
                    Token::Word(w) if w == "zeros" => Data::Zeros,
                    Token::Word(w) if w == "ones" => Data::Ones,
                    Token::Word(w) if w == "constant" => Data::Constant,
                    Token::Word(w) if w == "random" => Data::Random,
                    _ => return self.expected("what to write: zeros, ones, constant or random"),
                };
                self.step();
                self.access(Verb::Write(data), at)?
            }
            "discard" => self.access(Verb::Discard, at)?,
            "flush" => Statement::Flush,
            "wait" => self.wait(at)?,
            "print" => {
                let mut items = vec![self.item()?];
                while self.eat(",") {
                    items.push(self.item()?);
                }
                Statement::Print { items, at }
            }
            "newline" => Statement::Newline,
            "prepare" => Statement::Prepare(self.block()?),
            "param" => return Err((at, "parameters stand before everything else".into())),
            w => {
                return Err((
                    at,
                    format!(
                        "'{w}' is no statement; there are let, for, repeat, read, write, discard, flush, wait, prepare, print, newline, mean, min, max, median, total"
                    ),
                ));
            }
        })
    }

    fn for_loop(&mut self, at: At) -> Got<Statement> {
        let name = self.name()?;
        self.want_word("in")?;
        let (halves, doubles) = (self.eat_word("halves"), self.eat_word("doubles"));
        let from = self.expr()?;
        self.want("..")?;
        let to = self.expr()?;
        let steps = match (halves, doubles) {
            (true, _) => Steps::Halves { from, to },
            (_, true) => Steps::Doubles { from, to },
            _ => Steps::Count { from, to, step: if self.eat_word("step") { self.expr()? } else { Expr::Number(1) } },
        };
        let order = if self.eat_word("backwards") {
            Order::Backwards
        } else if self.eat_word("shuffled") {
            Order::Shuffled(if self.eat_word("when") { Some(self.expr()?) } else { None })
        } else {
            Order::Forwards
        };
        self.names.push(name.clone());
        let body = self.block();
        self.names.pop();
        Ok(Statement::For { name, steps, order, body: body?, at })
    }

    fn access(&mut self, verb: Verb, at: At) -> Got<Statement> {
        let len = self.expr()?;
        self.want_word("at")?;
        Ok(Statement::Access { verb, len, place: self.expr()?, at })
    }

    fn wait(&mut self, at: At) -> Got<Statement> {
        let time = self.expr()?;
        let factor = match self.peek() {
            Token::Word(w) if w == "us" => 1_000,
            Token::Word(w) if w == "ms" => 1_000_000,
            Token::Word(w) if w == "s" => 1_000_000_000,
            _ => return self.expected("a unit of time: us, ms or s"),
        };
        self.step();
        Ok(Statement::Wait { time: Expr::Binary('*', Box::new(time), Box::new(Expr::Number(factor)), at), at })
    }

    fn item(&mut self) -> Got<Item> {
        if let Token::Text(t) = self.peek() {
            let t = t.clone();
            self.step();
            return Ok(Item::Text(t));
        }
        for (word, rate) in [("rate", true), ("time", false)] {
            if self.eat_word(word) {
                let at = self.at();
                let Some(how) = (match self.peek() {
                    Token::Word(w) => how(w),
                    _ => None,
                }) else {
                    return self.expected("mean, min, max, median or total");
                };
                self.step();
                let reduce = Reduce { how, body: self.block()?, at };
                return Ok(if rate { Item::Rate(reduce) } else { Item::Time(reduce) });
            }
        }
        if self.eat_word("size") {
            return Ok(Item::Size(self.expr()?));
        }
        if self.eat_word("number") {
            return Ok(Item::Number(self.expr()?));
        }
        self.expected("a text in \"\", size, number, rate or time")
    }

    /// Sums of products; `<<` binds as a product does.
    fn expr(&mut self) -> Got<Expr> {
        let mut left = self.product()?;
        for n in 0.. {
            let at = self.at();
            self.few(n, at)?;
            let sign = match self.peek() {
                Token::Sign("+") => '+',
                Token::Sign("-") => '-',
                _ => return Ok(left),
            };
            self.step();
            left = Expr::Binary(sign, Box::new(left), Box::new(self.product()?), at);
        }
        Ok(left)
    }

    fn few(&self, terms: usize, at: At) -> Got<()> {
        if terms < TERMS { Ok(()) } else { Err((at, format!("more than {TERMS} terms in one expression; name a part of them with let"))) }
    }

    fn product(&mut self) -> Got<Expr> {
        let mut left = self.factor()?;
        for n in 0.. {
            let at = self.at();
            self.few(n, at)?;
            let sign = match self.peek() {
                Token::Sign("*") => '*',
                Token::Sign("/") => '/',
                Token::Sign("%") => '%',
                Token::Sign("<<") => '<',
                _ => return Ok(left),
            };
            self.step();
            left = Expr::Binary(sign, Box::new(left), Box::new(self.factor()?), at);
        }
        Ok(left)
    }

    fn factor(&mut self) -> Got<Expr> {
        let at = self.at();
        match self.step() {
            Token::Number(n) => Ok(Expr::Number(n)),
            Token::Word(w) if self.names.contains(&w) => Ok(Expr::Name(w, at)),
            Token::Word(w) if !WORDS.contains(&w.as_str()) => {
                let known =
                    if self.names.is_empty() { "no names are known here".into() } else { format!("known are {}", self.names.join(", ")) };
                Err((at, format!("'{w}' is not known; {known}")))
            }
            Token::Sign("(") => {
                self.depth += 1;
                if self.depth > DEPTH {
                    return Err((at, format!("more than {DEPTH} brackets inside each other")));
                }
                let e = self.expr()?;
                self.want(")")?;
                self.depth -= 1;
                Ok(e)
            }
            Token::End => Err((at, "expected a number or a name, found the end".into())),
            _ => {
                self.next -= 1;
                self.expected("a number or a name")
            }
        }
    }
}

fn how(word: &str) -> Option<How> {
    Some(match word {
        "mean" => How::Mean,
        "min" => How::Min,
        "max" => How::Max,
        "median" => How::Median,
        "total" => How::Total,
        _ => return None,
    })
}
