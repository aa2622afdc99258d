//! The filters, tests and functions that a template may use: each weighs what it takes and what it makes.

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};

use super::budget::Budget;
use super::guarded::{NUMBER, SETTLED, WEIGHED};

/// How a filter or test goes about its work.
#[derive(Clone, Copy)]
enum Work {
    /// It looks at the outside of its values alone, and makes nothing.
    Picks,
    /// It looks at all of its values.
    Walks,
    /// It writes them out.
    Writes,
    /// It takes the first of them apart: a text, letter by letter.
    Parts,
}

use Work::{Parts, Picks, Walks, Writes};

macro_rules! named {
    ($(($work:ident, $module:ident: $($name:literal = $function:ident),+ $(,)?)),+ $(,)?) => {
        vec![$($(($name, $work, Value::from_function($module::$function))),+),+]
    };
}

/// Not offered: `indent`, `format`, `batch`, `slice` (a number in them makes any size), `chain`, `zip`, `pprint`,
/// and whatever is not of use in a page.
fn offered_filters() -> Vec<(&'static str, Work, Value)> {
    named! {
        (Picks, filters: "count" = length, "d" = default, "default" = default, "first" = first, "last" = last, "length" = length),
        (Walks, filters:
            "abs" = abs, "bool" = bool, "capitalize" = capitalize, "float" = float, "int" = int, "lower" = lower,
            "replace" = replace, "round" = round, "safe" = safe, "title" = title, "trim" = trim, "upper" = upper,
        ),
        (Writes, filters: "e" = escape, "escape" = escape, "join" = join, "string" = string, "tojson" = tojson),
        (Parts, filters:
            "dictsort" = dictsort, "groupby" = groupby, "items" = items, "lines" = lines, "list" = list, "map" = map,
            "max" = max, "min" = min, "reject" = reject, "rejectattr" = rejectattr, "reverse" = reverse,
            "select" = select, "selectattr" = selectattr, "sort" = sort, "split" = split, "sum" = sum,
            "unique" = unique,
        ),
    }
}

fn offered_tests() -> Vec<(&'static str, Work, Value)> {
    named! {
        (Picks, tests:
            "boolean" = is_boolean, "defined" = is_defined, "even" = is_even, "false" = is_false,
            "float" = is_float, "int" = is_integer, "integer" = is_integer, "iterable" = is_iterable,
            "mapping" = is_mapping, "none" = is_none, "number" = is_number, "odd" = is_odd,
            "sequence" = is_sequence, "string" = is_string, "true" = is_true, "undefined" = is_undefined,
        ),
        (Walks, tests:
            "!=" = is_ne, "<" = is_lt, "<=" = is_le, "==" = is_eq, ">" = is_gt, ">=" = is_ge,
            "divisibleby" = is_divisibleby, "endingwith" = is_endingwith, "eq" = is_eq, "equalto" = is_eq,
            "ge" = is_ge, "greaterthan" = is_gt, "gt" = is_gt, "in" = is_in, "le" = is_le, "lessthan" = is_lt,
            "lower" = is_lower, "lt" = is_lt, "ne" = is_ne, "startingwith" = is_startingwith, "upper" = is_upper,
        ),
    }
}

/// Everything that a template may use. It is built for each page: the budget is the page's own.
pub(super) fn offer(env: &mut Environment<'_>, budget: &Budget) {
    for (name, work, filter) in offered_filters() {
        let budget = budget.clone();
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            spend(&budget, work, &args)?;
            spend_more(&budget, name, &args)?;
            let made = filter.call(state, &args)?;
            match work {
                Picks => Ok(made),
                Walks | Writes | Parts => budget.settle(made),
            }
        });
    }
    for (name, work, test) in offered_tests() {
        let budget = budget.clone();
        env.add_test(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            spend(&budget, work, &args)?;
            test.call(state, &args)
        });
    }
    env.add_function("range", range);
    let of = budget.clone();
    env.add_function(SETTLED, move |value: Value| of.settle(value));
    let of = budget.clone();
    env.add_function(WEIGHED, move |value: Value| of.weigh(&value).map(|()| value));
    env.add_function(NUMBER, |value: Value| {
        if value.is_number() || value.is_undefined() {
            return Ok(value);
        }
        refused("only numbers can be multiplied")
    });
}

/// The names of what is offered, so that a template can be checked before it runs.
pub(super) struct Offer {
    filters: Vec<&'static str>,
    tests: Vec<&'static str>,
}

impl Offer {
    pub(super) fn new() -> Self {
        let names =
            |offered: Vec<(&'static str, Work, Value)>| offered.into_iter().map(|(name, ..)| name).collect();
        Self { filters: names(offered_filters()), tests: names(offered_tests()) }
    }

    pub(super) fn has_filter(&self, name: &str) -> bool {
        self.filters.contains(&name)
    }

    pub(super) fn has_test(&self, name: &str) -> bool {
        self.tests.contains(&name)
    }
}

fn spend(budget: &Budget, work: Work, args: &[Value]) -> Result<(), Error> {
    args.iter().enumerate().try_for_each(|(place, value)| match work {
        // A text has to be walked even to count it.
        Picks if value.as_str().is_none() => budget.spend(8),
        Writes => budget.weigh_written(value),
        Parts if place == 0 => budget.weigh(value).and_then(|()| budget.weigh_letters(value)),
        Picks | Walks | Parts => budget.weigh(value),
    })
}

/// What a filter makes may be larger than what it takes: that is spent before it is made.
fn spend_more(budget: &Budget, name: &str, args: &[Value]) -> Result<(), Error> {
    match (name, args) {
        ("join", [items, rest @ ..]) => {
            let named =
                |value: &Value| Kwargs::try_from(value.clone()).ok()?.get::<Option<Value>>("d").ok()?;
            let mut longest = 0;
            for value in rest {
                let text = if value.is_kwargs() { named(value) } else { Some(value.clone()) };
                longest = longest.max(text.as_ref().map_or(Ok(0), length)?);
            }
            budget.weigh_letters(items)?;
            budget.spend((items.len().unwrap_or_default() as u64).saturating_mul(longest))
        }
        ("replace", [text, from, to]) => {
            let (text, from, to) = (length(text)?, length(from)?, length(to)?);
            let places = text.checked_div(from).unwrap_or(text).saturating_add(1);
            // Where a text is escaped first, it may become six times as long.
            budget.spend(places.saturating_mul(to).saturating_mul(6))
        }
        ("tojson", [_, _, ..]) => refused("tojson takes no more values: what it makes is compact"),
        ("sum", args) if args.len() > 2 || args.iter().any(has_start) => {
            refused("sum takes no start: it adds up numbers")
        }
        _ => Ok(()),
    }
}

/// The bytes of what is written into a text.
fn length(value: &Value) -> Result<u64, Error> {
    match value.as_str() {
        Some(text) => Ok(text.len() as u64),
        None if matches!(value.kind(), ValueKind::Undefined | ValueKind::None | ValueKind::Bool) => Ok(8),
        None if value.is_number() => Ok(64),
        None => refused("join and replace take texts"),
    }
}

fn has_start(value: &Value) -> bool {
    value.is_kwargs() && value.get_attr("start").is_ok_and(|start| !start.is_undefined())
}

fn refused<T>(message: &'static str) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Numbers from 0, or from `from`, up to but without `to`.
fn range(from: i64, to: Option<i64>) -> Result<Vec<i64>, Error> {
    let (from, to) = to.map_or((0, from), |to| (from, to));
    if to.saturating_sub(from) > 10_000 {
        return refused("a range has at most 10000 numbers");
    }
    Ok((from..to).collect())
}
