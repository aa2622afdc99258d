//! `perennial forget`: erases what is remembered of nodes.

use perennial_core::keeper::Body;
use perennial_core::keeper::mark::FORGET;

use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::screen::Screen;
use super::writes::settle;
use crate::args::operate::ForgetArgs;
use crate::config::DeskConfig;

pub(crate) async fn run(args: &ForgetArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::connect(config).await?;
    for name in &args.names {
        desk.known(name).await?;
    }
    let question = format!("Forget {}? What is recorded of them is erased.", args.names.join(", "));
    if !screen.confirm(&question, args.yes)? {
        screen.note("Nothing was changed.")?;
        return Ok(1);
    }
    let mut failed = false;
    for name in &args.names {
        match settle(async || forget(&desk, &desk.known(name).await?).await).await {
            Ok(words) => screen.say(format_args!("node/{name} {words}"))?,
            Err(error) => {
                failed = true;
                screen.note(error)?;
            }
        }
    }
    Ok(u8::from(failed))
}

async fn forget(desk: &Desk, entry: &Entry) -> Result<String, Error> {
    if let Some(live) = entry.live() {
        if live.hand.forget {
            return Ok("is to be forgotten already".to_owned());
        }
        desk.annotate(&entry.name, live, FORGET, Some("true")).await?;
        let undo = format!("kubectl annotate node {} {FORGET}-", entry.name);
        return Ok(format!(
            "is to be forgotten: a replica erases its record, and keeps nothing of it until `{undo}`"
        ));
    }
    let Some(seen) = entry.seen() else { return Ok("is forgotten already".to_owned()) };
    if seen.body == Body::Newer {
        return Err(Error::Said(format!(
            "the record of node {:?} was written by a newer perennial, which alone may erase it: upgrade this one",
            entry.name
        )));
    }
    desk.told(desk.api.erase_record(&entry.name, seen).await)?;
    Ok("forgotten (it is away)".to_owned())
}
