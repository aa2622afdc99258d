//! What is looked at before a template is parsed.
//!
//! The parser and the compiler call themselves for each link of a chain (`a ~ b ~ c`, `- - x`, `{% elif %}`) and for
//! each level of nesting, and the stack is finite: a long chain would end the process. So tags are short, and neither
//! brackets nor blocks are nested deep.

use minijinja::machinery::{Token, tokenize};

use super::error::TemplateError;
use super::{MAX_TEMPLATE, engine, go};

/// The most tokens in one tag.
const MAX_TOKENS: usize = 400;

/// The most brackets in brackets.
const MAX_BRACKETS: usize = 16;

/// The most blocks in blocks. An `elif` is a block in the block before it.
const MAX_BLOCKS: usize = 50;

/// Where the scan stands.
#[derive(Default)]
struct Scan<'a> {
    /// Since the tag began.
    tokens: usize,
    /// Open in this tag.
    brackets: usize,
    /// Open around this tag.
    blocks: usize,
    /// The word that this tag began with.
    keyword: Option<&'a str>,
    /// Whether there was a `=` in this tag.
    assigns: bool,
    /// Of the `if`s that are open, how many `elif`s each has.
    elifs: Vec<usize>,
}

/// Refuses what must not be parsed.
pub(super) fn scan(source: &str) -> Result<(), TemplateError> {
    if source.len() > MAX_TEMPLATE {
        return Err(TemplateError::TooLarge { bytes: source.len(), limit: MAX_TEMPLATE });
    }
    let mut scan = Scan::default();
    for token in tokenize(source, false, engine::syntax()) {
        let (token, span) = token?;
        let line = usize::from(span.start_line);
        if let Token::VariableStart = token {
            let after = source.get(span.end_offset as usize..).unwrap_or_default();
            go::check(after.split("}}").next().unwrap_or_default(), line)?;
        }
        scan.step(&token)
            .map_err(|message| TemplateError::Syntax { line: Some(line), message: message.to_owned() })?;
    }
    Ok(())
}

impl<'a> Scan<'a> {
    fn step(&mut self, token: &Token<'a>) -> Result<(), &'static str> {
        self.tokens += 1;
        match token {
            Token::VariableStart | Token::BlockStart | Token::TemplateData(_) => {
                (self.tokens, self.brackets, self.keyword, self.assigns) = (0, 0, None, false);
            }
            Token::Ident(word) if self.tokens == 1 => self.keyword = Some(word),
            Token::Assign => self.assigns = true,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => self.brackets += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.brackets = self.brackets.saturating_sub(1);
            }
            Token::BlockEnd => self.end_block_tag(),
            _ => {}
        }
        if self.tokens > MAX_TOKENS {
            return Err("this tag is too long: use several");
        }
        if self.brackets > MAX_BRACKETS {
            return Err("there are too many brackets in brackets");
        }
        if self.blocks > MAX_BLOCKS {
            return Err("there are too many blocks in blocks, or `elif`s in an `if`");
        }
        Ok(())
    }

    fn end_block_tag(&mut self) {
        match self.keyword {
            Some("if") => {
                self.blocks += 1;
                self.elifs.push(0);
            }
            Some("elif") => {
                self.blocks += 1;
                if let Some(elifs) = self.elifs.last_mut() {
                    *elifs += 1;
                }
            }
            Some("endif") => {
                let elifs = self.elifs.pop().unwrap_or_default();
                self.blocks = self.blocks.saturating_sub(1 + elifs);
            }
            Some("set") if self.assigns => {}
            Some("for" | "with" | "filter" | "autoescape" | "set") => self.blocks += 1,
            Some("endfor" | "endwith" | "endfilter" | "endautoescape" | "endset") => {
                self.blocks = self.blocks.saturating_sub(1);
            }
            _ => {}
        }
    }
}
