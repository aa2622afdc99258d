//! A template's tree, copied so that every step which makes or walks a value of any size is weighed.
//!
//! | in the template | in the copy |
//! | --- | --- |
//! | text between tags | written like a value, so that it is weighed like one |
//! | `a ~ b`, `a + b`, `[a]`, `(a, b)`, `{a: b}`, `a[b:c]`, `f(a)` | the result is weighed, and what is made anew at each look becomes a list |
//! | `a ~ b`, `a + b`, `a == b`, `a < b`, `a in b`, … | both sides are weighed |
//! | `a * b` | both sides must be numbers |
//! | filters and tests | they must be offered; they weigh for themselves |
//! | recursive loops, `do`, slices with a step, calls of anything but `range`, `loop.cycle` and `loop.changed` | refused |

use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt};
use minijinja::value::Value;

use super::error::TemplateError;
use super::filters::Offer;

/// The functions that the copy calls. No template can write these names, and none can set them.
pub(super) const SETTLED: &str = "a settled value";
pub(super) const WEIGHED: &str = "a weighed value";
pub(super) const NUMBER: &str = "a number";

type Copied<T> = Result<T, TemplateError>;

/// Copies a template's tree.
pub(super) fn guarded<'a>(template: &Stmt<'a>) -> Copied<Stmt<'a>> {
    Guard { offer: Offer::new() }.stmt(template)
}

struct Guard {
    offer: Offer,
}

impl Guard {
    fn stmt<'a>(&self, stmt: &Stmt<'a>) -> Copied<Stmt<'a>> {
        Ok(match stmt {
            Stmt::Template(s) => {
                Stmt::Template(respan(s, ast::Template { children: self.body(&s.children)? }))
            }
            Stmt::EmitExpr(s) => Stmt::EmitExpr(respan(s, ast::EmitExpr { expr: self.expr(&s.expr)? })),
            Stmt::EmitRaw(s) => {
                let value = Value::from_safe_string(s.raw.to_owned());
                let expr = Expr::Const(respan(s, ast::Const { value }));
                Stmt::EmitExpr(respan(s, ast::EmitExpr { expr }))
            }
            Stmt::ForLoop(s) if s.recursive => {
                return refused(s.span(), "recursive loops are not offered here");
            }
            Stmt::ForLoop(s) => Stmt::ForLoop(respan(
                s,
                ast::ForLoop {
                    target: target(&s.target)?,
                    iter: self.expr(&s.iter)?,
                    filter_expr: self.optional(s.filter_expr.as_ref())?,
                    recursive: false,
                    body: self.body(&s.body)?,
                    else_body: self.body(&s.else_body)?,
                },
            )),
            Stmt::IfCond(s) => Stmt::IfCond(respan(
                s,
                ast::IfCond {
                    expr: self.expr(&s.expr)?,
                    true_body: self.body(&s.true_body)?,
                    false_body: self.body(&s.false_body)?,
                },
            )),
            Stmt::WithBlock(s) => {
                let assign = |(to, expr): &(Expr<'a>, Expr<'a>)| Ok((target(to)?, self.expr(expr)?));
                let assignments = s.assignments.iter().map(assign).collect::<Copied<_>>()?;
                Stmt::WithBlock(respan(s, ast::WithBlock { assignments, body: self.body(&s.body)? }))
            }
            Stmt::Set(s) => {
                Stmt::Set(respan(s, ast::Set { target: target(&s.target)?, expr: self.expr(&s.expr)? }))
            }
            Stmt::SetBlock(s) => Stmt::SetBlock(respan(
                s,
                ast::SetBlock {
                    target: target(&s.target)?,
                    filter: self.optional(s.filter.as_ref())?,
                    body: self.body(&s.body)?,
                },
            )),
            Stmt::AutoEscape(s) => Stmt::AutoEscape(respan(
                s,
                ast::AutoEscape { enabled: self.expr(&s.enabled)?, body: self.body(&s.body)? },
            )),
            Stmt::FilterBlock(s) => Stmt::FilterBlock(respan(
                s,
                ast::FilterBlock { filter: self.expr(&s.filter)?, body: self.body(&s.body)? },
            )),
            Stmt::Do(s) => return refused(s.span(), "`do` is not offered here"),
        })
    }

    fn body<'a>(&self, body: &[Stmt<'a>]) -> Copied<Vec<Stmt<'a>>> {
        body.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn expr<'a>(&self, expr: &Expr<'a>) -> Copied<Expr<'a>> {
        Ok(match expr {
            Expr::Var(e) => Expr::Var(respan(e, ast::Var { id: e.id })),
            Expr::Const(e) => Expr::Const(respan(e, ast::Const { value: e.value.clone() })),
            Expr::Slice(e) if e.step.is_some() => return refused(e.span(), "slices have no step here"),
            Expr::Slice(e) => settled(Expr::Slice(respan(
                e,
                ast::Slice {
                    expr: self.expr(&e.expr)?,
                    start: self.optional(e.start.as_ref())?,
                    stop: self.optional(e.stop.as_ref())?,
                    step: None,
                },
            ))),
            Expr::UnaryOp(e) => {
                let negates = matches!(e.op, ast::UnaryOpKind::Neg);
                let op = if negates { ast::UnaryOpKind::Neg } else { ast::UnaryOpKind::Not };
                Expr::UnaryOp(respan(e, ast::UnaryOp { op, expr: self.expr(&e.expr)? }))
            }
            Expr::BinOp(e) => self.binary(e)?,
            Expr::Compare(e) => {
                let compared = |op: &ast::CompareOp<'a>| {
                    Ok(ast::CompareOp { op: op.op, expr: weighed(self.expr(&op.expr)?) })
                };
                let ops = e.ops.iter().map(compared).collect::<Copied<_>>()?;
                Expr::Compare(respan(e, ast::Compare { expr: weighed(self.expr(&e.expr)?), ops }))
            }
            Expr::IfExpr(e) => Expr::IfExpr(respan(
                e,
                ast::IfExpr {
                    test_expr: self.expr(&e.test_expr)?,
                    true_expr: self.expr(&e.true_expr)?,
                    false_expr: self.optional(e.false_expr.as_ref())?,
                },
            )),
            Expr::Filter(e) if !self.offer.has_filter(e.name) => {
                return refused(e.span(), &format!("there is no filter {:?} here", e.name));
            }
            Expr::Filter(e) => Expr::Filter(respan(
                e,
                ast::Filter {
                    name: e.name,
                    expr: self.optional(e.expr.as_ref())?,
                    args: self.args(&e.args)?,
                },
            )),
            Expr::Test(e) if !self.offer.has_test(e.name) => {
                return refused(e.span(), &format!("there is no test {:?} here", e.name));
            }
            Expr::Test(e) => Expr::Test(respan(
                e,
                ast::Test { name: e.name, expr: self.expr(&e.expr)?, args: self.args(&e.args)? },
            )),
            Expr::GetAttr(e) => {
                Expr::GetAttr(respan(e, ast::GetAttr { expr: self.expr(&e.expr)?, name: e.name }))
            }
            Expr::GetItem(e) => Expr::GetItem(respan(
                e,
                ast::GetItem { expr: self.expr(&e.expr)?, subscript_expr: self.expr(&e.subscript_expr)? },
            )),
            Expr::Call(e) => {
                if !is_offered(&e.expr) {
                    return refused(
                        e.span(),
                        "only range(), loop.cycle() and loop.changed() can be called here",
                    );
                }
                settled(Expr::Call(respan(
                    e,
                    ast::Call { expr: self.expr(&e.expr)?, args: self.args(&e.args)? },
                )))
            }
            Expr::List(e) => settled(Expr::List(respan(e, ast::List { items: self.exprs(&e.items)? }))),
            Expr::Tuple(e) => settled(Expr::Tuple(respan(e, ast::Tuple { items: self.exprs(&e.items)? }))),
            Expr::Map(e) => settled(Expr::Map(respan(
                e,
                ast::Map { keys: self.exprs(&e.keys)?, values: self.exprs(&e.values)? },
            ))),
        })
    }

    fn binary<'a>(&self, e: &Spanned<ast::BinOp<'a>>) -> Copied<Expr<'a>> {
        let (left, right) = (self.expr(&e.left)?, self.expr(&e.right)?);
        let made = |left, right| Expr::BinOp(respan(e, ast::BinOp { op: e.op, left, right }));
        Ok(match e.op {
            // Weighed before, so that nothing is made that is too large; and after, for it is a value of its own.
            BinOpKind::Add | BinOpKind::Concat => settled(made(weighed(left), weighed(right))),
            BinOpKind::Mul => made(number(left)?, number(right)?),
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::In => made(weighed(left), weighed(right)),
            BinOpKind::ScAnd
            | BinOpKind::ScOr
            | BinOpKind::Sub
            | BinOpKind::Div
            | BinOpKind::FloorDiv
            | BinOpKind::Rem
            | BinOpKind::Pow => made(left, right),
        })
    }

    fn exprs<'a>(&self, exprs: &[Expr<'a>]) -> Copied<Vec<Expr<'a>>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn optional<'a>(&self, expr: Option<&Expr<'a>>) -> Copied<Option<Expr<'a>>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    fn args<'a>(&self, args: &[CallArg<'a>]) -> Copied<Vec<CallArg<'a>>> {
        let arg = |arg: &CallArg<'a>| {
            Ok(match arg {
                CallArg::Pos(expr) => CallArg::Pos(self.expr(expr)?),
                CallArg::Kwarg(name, expr) => CallArg::Kwarg(name, self.expr(expr)?),
                CallArg::PosSplat(expr) => CallArg::PosSplat(self.expr(expr)?),
                CallArg::KwargSplat(expr) => CallArg::KwargSplat(self.expr(expr)?),
            })
        };
        args.iter().map(arg).collect()
    }
}

/// What is assigned to: names, and lists of names.
fn target<'a>(expr: &Expr<'a>) -> Copied<Expr<'a>> {
    let targets = |items: &[Expr<'a>]| items.iter().map(target).collect::<Copied<_>>();
    Ok(match expr {
        Expr::Var(e) => Expr::Var(respan(e, ast::Var { id: e.id })),
        Expr::List(e) => Expr::List(respan(e, ast::List { items: targets(&e.items)? })),
        Expr::Tuple(e) => Expr::Tuple(respan(e, ast::Tuple { items: targets(&e.items)? })),
        other => return refused(other.span(), "only names can be set"),
    })
}

fn respan<T, U>(of: &Spanned<T>, node: U) -> Spanned<U> {
    Spanned::new(node, of.span())
}

fn settled(expr: Expr<'_>) -> Expr<'_> {
    let constant = match &expr {
        Expr::List(list) => list.as_const().is_some(),
        Expr::Tuple(tuple) => tuple.as_const().is_some(),
        Expr::Map(map) => map.as_const().is_some(),
        _ => false,
    };
    // A constant is no larger than the template, and made once.
    if constant { expr } else { call(SETTLED, expr) }
}

fn weighed(expr: Expr<'_>) -> Expr<'_> {
    match expr {
        Expr::Const(_) => expr,
        _ => call(WEIGHED, expr),
    }
}

/// Constants are multiplied before the template runs, so they are looked at here.
fn number(expr: Expr<'_>) -> Copied<Expr<'_>> {
    match &expr {
        Expr::Const(constant) if constant.value.is_number() => Ok(expr),
        Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => {
            refused(expr.span(), "only numbers can be multiplied")
        }
        _ => Ok(call(NUMBER, expr)),
    }
}

fn call<'a>(function: &'static str, expr: Expr<'a>) -> Expr<'a> {
    let span = expr.span();
    let name = Expr::Var(Spanned::new(ast::Var { id: function }, span));
    Expr::Call(Spanned::new(ast::Call { expr: name, args: vec![CallArg::Pos(expr)] }, span))
}

/// Whether this is one of the few functions there are.
fn is_offered(function: &Expr<'_>) -> bool {
    match function {
        Expr::Var(name) => name.id == "range",
        Expr::GetAttr(attr) => {
            matches!(&attr.expr, Expr::Var(name) if name.id == "loop")
                && matches!(attr.name, "cycle" | "changed")
        }
        _ => false,
    }
}

fn refused<T>(span: Span, message: &str) -> Copied<T> {
    Err(TemplateError::Syntax { line: Some(usize::from(span.start_line)), message: message.to_owned() })
}
