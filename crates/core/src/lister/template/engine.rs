//! Where a template is parsed, guarded and run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{CodeGenerator, eval, make_string_output, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior, escape_formatter};

use super::budget::Budget;
use super::context::Facts;
use super::error::TemplateError;
use super::guarded::guarded;
use super::{MAX_PAGE, filters, scan};
use crate::lister::page::Format;

/// The steps that a page takes at most: so many, and so many more for each endpoint.
const STEPS: (u64, u64) = (100_000, 500);

/// What all values of a page weigh at most, in about bytes: so much, and so much more for each endpoint.
const WEIGHT: (u64, u64) = (8 * 1024 * 1024, 16 * 1024);

/// What is written weighs about twice its bytes where a page has many short values.
const OUTPUT: u64 = 2 * MAX_PAGE as u64;

/// The name in the engine's own messages.
const NAME: &str = "template";

/// Checks what can be known before a template runs.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    unpanicked(|| tree(source).map(drop))
}

/// Makes the page.
pub(super) fn render(source: &str, format: Format, facts: &Facts<'_>) -> Result<String, TemplateError> {
    let page = unpanicked(|| run(source, format, facts))?;
    if page.len() > MAX_PAGE {
        return Err(TemplateError::PageTooLarge { bytes: page.len(), limit: MAX_PAGE });
    }
    Ok(page)
}

/// Jinja's, except that a page ends as its template does.
pub(super) fn syntax() -> SyntaxConfig {
    let built = SyntaxConfig::builder().keep_trailing_newline(true).build();
    // Only delimiters can be wrong, and these are the usual ones.
    built.unwrap_or_default()
}

fn tree(source: &str) -> Result<Stmt<'_>, TemplateError> {
    scan::scan(source)?;
    guarded(&parse(source, NAME, syntax())?)
}

fn run(source: &str, format: Format, facts: &Facts<'_>) -> Result<String, TemplateError> {
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&tree(source)?);
    let (instructions, _) = generator.finish();

    let allowed =
        |(base, each): (u64, u64)| base.saturating_add(each.saturating_mul(facts.endpoints.len() as u64));
    let env = environment(allowed(STEPS), &Budget::of_values(allowed(WEIGHT)));
    let escape = match format {
        Format::Html => AutoEscape::Html,
        Format::Json => AutoEscape::Json,
        Format::Text => AutoEscape::None,
    };
    let mut page = String::new();
    let blocks = BTreeMap::new();
    let mut out = make_string_output(&mut page);
    eval(&env, &instructions, facts.value(), &blocks, &mut out, escape)?;
    drop(out);
    Ok(page)
}

fn environment<'a>(steps: u64, budget: &Budget) -> Environment<'a> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(steps));
    // So that an error names what is undefined.
    env.set_debug(true);
    filters::offer(&mut env, budget);
    let output = Budget::of_output(OUTPUT);
    env.set_formatter(move |out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value| {
        output.weigh_written(value)?;
        // Pages show what is absent as nothing; JSON has a word for it.
        if value.is_none() && *state.auto_escape() != AutoEscape::Json {
            return Ok::<_, Error>(());
        }
        escape_formatter(out, state, value)
    });
    env
}

/// A bug in the engine must not end the task that follows a listing.
fn unpanicked<T>(run: impl FnOnce() -> Result<T, TemplateError>) -> Result<T, TemplateError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(TemplateError::Engine))
}
