//! `perennial listings`: what is published, and what came of it.

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::request::Request as Resource;

use super::desk::Desk;
use super::document::{self, Items};
use super::error::Error;
use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use super::times::age_of;
use crate::args::operate::{Document, ListingsArgs, Output};
use crate::cluster::ApiError;
use crate::config::DeskConfig;
use crate::lister::listing::{Condition, Listing};

pub(crate) async fn run(args: &ListingsArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::connect(config).await?;
    let below = args.only.as_ref().map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    let resource = Resource::new(format!("/apis/perennial.dev/v1alpha1{below}/listings"));
    let (mut listings, _) = match desk.list::<Listing>("listings", &resource, true).await {
        Err(Error::Api { error: ApiError::NotFound | ApiError::Server(404, _), .. }) => {
            return Err(Error::said(
                "the server doesn't have a resource type \"listings\": kubectl apply -f deploy/crds",
            ));
        }
        listed => listed?,
    };
    listings.sort_by_key(|listing| (listing.namespace(), listing.name_any()));
    match args.output {
        Some(Output::Json) => document::write(screen, &Items::new(listings), Document::Json)?,
        Some(Output::Yaml) => document::write(screen, &Items::new(listings), Document::Yaml)?,
        Some(Output::Name) => {
            for listing in &listings {
                screen.say(format_args!("listing.perennial.dev/{}", listing.name_any()))?;
            }
        }
        Some(Output::Wide) | None if listings.is_empty() => screen.note("No listings found.")?,
        wide => {
            let table = table(&listings, wide.is_some(), desk.now());
            table.without_header(args.no_headers).show(screen, 0)?;
        }
    }
    Ok(0)
}

fn table(listings: &[Listing], wide: bool, now: Timestamp) -> Table {
    let mut header = vec!["NAMESPACE", "NAME", "SERVICE", "ENDPOINTS", "READY", "REASON", "PUBLISHED"];
    if wide {
        header.extend(["DESTINATIONS", "DIGEST", "MESSAGE"]);
    }
    let mut table = Table::new(&header);
    for listing in listings {
        let status = listing.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
        let said = |of: fn(&Condition) -> &String| ready.map_or("-", |ready| of(ready).as_str());
        let style = match said(|ready| &ready.status) {
            "True" => Style::Good,
            "False" => Style::Bad,
            _ => Style::Notice,
        };
        let published = status.last_published.as_deref().and_then(|at| at.parse().ok());
        let mut cells: Vec<Cell> = vec![
            listing.namespace().unwrap_or_default().into(),
            listing.name_any().into(),
            listing.spec.service.as_str().into(),
            status.endpoints.map_or_else(|| "-".to_owned(), |count| count.to_string()).into(),
            Cell::styled(said(|ready| &ready.status), style),
            said(|ready| &ready.reason).into(),
            age_of(published, now).into(),
        ];
        if wide {
            let destinations = listing.spec.destinations.iter().map(|one| one.name.as_str());
            let destinations = destinations.collect::<Vec<_>>().join(",");
            cells.push(if destinations.is_empty() { "-".to_owned() } else { destinations }.into());
            cells.push(
                status.digest.as_deref().map_or("-", |digest| digest.get(..12).unwrap_or(digest)).into(),
            );
            cells.push(said(|ready| &ready.message).into());
        }
        table.row(cells);
    }
    table
}
