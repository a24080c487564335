//! Is this card genuine, does it store what it is told, is it healthy, is it fast enough? One answer a question, in plain words.
//!
//! Each answer is pass, fail, or not known with the reason and what would decide it. Nothing is called a failure that the conditions of
//! the measurement could explain: cards that were refused without reason are worse than none that were.

pub mod examine;
pub mod history;
pub mod judge;
pub mod measure;
pub mod watch;

use serde::Serialize;

/// Of the JSON that a check writes.
pub const SCHEMA: &str = "nandscope-check/1";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Is the flash as large as the card reports?
    Capacity,
    /// Does it return what was written?
    Stores,
    /// Do reads and writes succeed?
    Errors,
    /// Is it as fast as the class it declares?
    Speed,
    /// Is it fast enough for what it is wanted for?
    Purpose,
    /// What does it say of its own wear?
    Health,
    /// Is it on the kernel's list of cards with troubles?
    Troubles,
    /// Do partitions start where they cost nothing?
    Partitions,
}

impl Question {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Question::Capacity => "genuine capacity",
            Question::Stores => "stores data",
            Question::Errors => "errors",
            Question::Speed => "speed",
            Question::Purpose => "good for this use",
            Question::Health => "health",
            Question::Troubles => "known troubles",
            Question::Partitions => "partitions",
        }
    }
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Fail,
    NotKnown,
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::NotKnown => "not known",
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub question: Question,
    pub verdict: Verdict,
    /// What was seen, or why it is not known.
    pub because: String,
    /// What to do about it, or what would decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

impl Answer {
    fn new(question: Question, verdict: Verdict, because: impl Into<String>) -> Answer {
        Answer { question, verdict, because: because.into(), todo: None }
    }

    fn todo(mut self, what: impl Into<String>) -> Answer {
        self.todo = Some(what.into());
        self
    }
}

/// The whole card in one word, which is also the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Fine,
    Counterfeit,
    /// Errors, or data that do not read back.
    Failing,
    BelowClass,
    /// Nothing failed, and capacity or storing were not tested.
    NotKnown,
    /// It went away in the middle.
    Gone,
    /// It gave an answer that is none of its protocol.
    Garbled,
}

impl Outcome {
    /// The worst of the answers.
    pub fn of(answers: &[Answer]) -> Outcome {
        let is = |q: Question, v: Verdict| answers.iter().any(|a| a.question == q && a.verdict == v);
        let fails = |q: Question| is(q, Verdict::Fail);
        if fails(Question::Capacity) {
            Outcome::Counterfeit
        } else if [Question::Stores, Question::Errors, Question::Health].into_iter().any(fails) {
            Outcome::Failing
        } else if fails(Question::Speed) || fails(Question::Purpose) {
            Outcome::BelowClass
        } else if is(Question::Capacity, Verdict::Pass) && is(Question::Stores, Verdict::Pass) && is(Question::Errors, Verdict::Pass) {
            Outcome::Fine
        } else {
            Outcome::NotKnown
        }
    }

    /// The same where something was asked for, a class or a use: a card is not fine for it while that is not known.
    pub fn asked(self, answers: &[Answer], asked: &[Question]) -> Outcome {
        let open = answers.iter().any(|a| asked.contains(&a.question) && a.verdict == Verdict::NotKnown);
        if self == Outcome::Fine && open { Outcome::NotKnown } else { self }
    }

    /// For scripts.
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::NotKnown => 3,
            Outcome::Counterfeit => 6,
            Outcome::Failing => 7,
            Outcome::BelowClass => 8,
            Outcome::Gone | Outcome::Garbled => 1,
        }
    }
}

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod speed_tests;
