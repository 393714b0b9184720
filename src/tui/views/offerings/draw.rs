//! Draws the resources view: the tree, and the opened item.

use serde_json::{Value, json};

use crate::present::content::TextLook;
use crate::tui::prelude::*;
use crate::tui::views::form;
use crate::tui::views::offerings::form::OfferingForm;
use crate::tui::views::offerings::tree::{
    Offering, OfferingKind, OfferingRow, OfferingServer, OfferingTree,
};
use crate::tui::views::offerings::{
    OfferingRequest, OfferingResponse, OfferingsView, OpenOffering,
};
use crate::tui::views::result::presentation;
use crate::util::json;

const SUGGESTED: usize = 5;
const FRAMED: u16 = 16;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let offerings = &state.offerings;
    match (shown, &offerings.asking) {
        (Pane::OfferingList, _) => tree(pen, offerings, area),
        (_, Some(asking)) => draw_form(pen, asking, area),
        _ => content(pen, offerings, area),
    }
}

fn tree(pen: &mut Pen<'_>, offerings: &OfferingsView, area: Rect) {
    let inner = pen.open(area, "Resources and prompts");
    let rows = pen.filter(inner, &offerings.filter, None);
    let all = &offerings.tree.rows;
    if all.is_empty() {
        let text = match (offerings.tree.servers.as_slice(), offerings.filter.text()) {
            ([], "") => "No servers. Define them in mcp.yaml.",
            (_, "") => "No resources or prompts.",
            _ => NO_MATCHES,
        };
        return pen.put(pen.line(Role::Dim, text), rows);
    }
    let styler = pen.styler;
    pen.list(rows, offerings.list, all.len(), |at| {
        offering_row(styler, offerings, &all[at], usize::from(rows.width))
    });
}

fn offering_row(
    styler: Styler,
    offerings: &OfferingsView,
    row: &OfferingRow,
    width: usize,
) -> Line<'static> {
    let fold = styler.theme.fold(!offerings.tree.folded.contains(row));
    match row {
        OfferingRow::Server(name) => {
            let Some(server) = offerings.tree.server(name) else { return Line::default() };
            let (text, role) = state_of(server);
            Line::from(vec![
                styler.span(Role::Name, format!("{fold}{}", server.name)),
                styler.span(role, format!("  {text}")),
            ])
        }
        OfferingRow::Group(name, kind) => {
            let count = offerings.tree.server(name).map_or(0, |server| server.count(*kind));
            styler.line(Role::Dim, format!("  {fold}{} {count}", kind.title()))
        }
        OfferingRow::Item(item) => {
            let (watched, changed) = offerings.marks(item);
            let status = offerings.tree.offering(item).map(item_status).unwrap_or_default();
            let name = end_of(&styler.plain(&item.name).content, width.saturating_sub(6));
            // What says only a part of itself says nothing.
            let fits = text::width(&name) + text::width(&status) + 8 <= width;
            Line::from(vec![
                styler.span(Role::Success, watched.to_string()),
                styler.span(Role::Warning, changed.to_string()),
                styler.plain(format!("  {name}")),
                styler.dim(if fits { format!("  {status}") } else { String::new() }),
            ])
        }
    }
}

fn state_of(server: &OfferingServer) -> (String, Role) {
    match &server.offerings {
        _ if server.is_listing => ("loading…".to_owned(), Role::Dim),
        None => ("not listed".to_owned(), Role::Dim),
        Some(lists) => match lists.errors.first() {
            Some(error) => (format!("failed: {}", error.message()), Role::Error),
            None if server.items().is_empty() => ("tools only".to_owned(), Role::Dim),
            None => (String::new(), Role::Plain),
        },
    }
}

/// An address in so many cells: of a long one the end, in which addresses of one server differ.
fn end_of(address: &str, cells: usize) -> String {
    if text::width(address) <= cells {
        return address.to_owned();
    }
    let mut used = 1;
    let fits = address.chars().rev().take_while(|c| {
        used += text::width(c.encode_utf8(&mut [0; 4]));
        used <= cells
    });
    let end: String = fits.collect();
    format!("…{}", end.chars().rev().collect::<String>())
}

/// Its media type, size and arguments, the optional ones in brackets.
fn item_status(item: &Offering) -> String {
    let facts = [item.mime_type.clone(), item.size.map(show_size)].into_iter().flatten();
    let arguments = item.arguments.iter().map(|argument| {
        let name = &argument.name;
        if argument.required { name.clone() } else { format!("[{name}]") }
    });
    facts.chain(arguments).collect::<Vec<_>>().join(" ")
}

fn content(pen: &mut Pen<'_>, offerings: &OfferingsView, area: Rect) {
    let inner = if offerings.shown().is_some() {
        let ways = [("text", !offerings.is_raw), ("raw", offerings.is_raw)];
        pen.open_tabs(area, "Content", &ways)
    } else {
        pen.open(area, "About")
    };
    pen.text(&offerings.content, inner);
}

fn draw_form(pen: &mut Pen<'_>, asking: &OfferingForm, area: Rect) {
    let mut lines = form_footer(pen.styler, asking);
    let is_framed = pen.frames && area.height >= FRAMED && !lines.is_empty();
    let frame_rows = if is_framed { 2 } else { 0 };
    // A small screen keeps the fields.
    let rows = lines.len().min(usize::from(area.height / 3)) + frame_rows;
    let [above, below] = bottom(area, rows);
    let inner = pen.open(above, &format!("Arguments  {}", asking.form.tool));
    form::draw::inside(pen, &asking.form, inner);
    pen.focused = false;
    let below = if is_framed { pen.open(below, "Suggestions") } else { below };
    lines.truncate(below.height.into());
    pen.put(ratatui::text::Text::from(lines), below);
}

/// What is below the fields: the address that is made of them, what the server suggests.
fn form_footer(styler: Styler, asking: &OfferingForm) -> Vec<Line<'static>> {
    let suggestions = &asking.suggestions;
    let mut lines = Vec::new();
    if let Some(address) = asking.address() {
        lines.push(styler.fact(" reads", address));
    }
    let first = suggestions.accepted.unwrap_or(0).saturating_sub(SUGGESTED - 1);
    for (at, value) in suggestions.values.iter().enumerate().skip(first).take(SUGGESTED) {
        let taken = suggestions.accepted == Some(at);
        let meaning = if taken { Role::Selected } else { Role::Plain };
        let pointer = if taken { styler.theme.pointer() } else { "  " };
        let more = match suggestions.more {
            Some(more) if at + 1 == suggestions.values.len() => format!("  and {more} more"),
            _ => String::new(),
        };
        lines.push(styler.line(meaning, format!(" {pointer}{value}{more}")));
    }
    if let Some(error) = &suggestions.error {
        lines.push(styler.line(Role::Dim, format!(" no suggestions: {error}")));
    }
    lines
}

/// The text of the opened item, or why it could not be opened.
pub(super) fn open_content(opened: &OpenOffering, is_raw: bool) -> ScrollText {
    let mut page = ScrollText::default();
    match &opened.request {
        OfferingRequest::Read(uri) => page.fact("uri", uri),
        OfferingRequest::Get(name, arguments) => {
            page.fact("prompt", name);
            if !arguments.is_empty() {
                page.fact("arguments", json::short(arguments));
            }
        }
    }
    match &opened.answer {
        None => page.line(Role::Dim, "waiting for a response; Esc cancels"),
        Some(OfferingResponse::Failed(error)) => page.page(&present::messages::failure(error)),
        Some(OfferingResponse::Contents(parts)) if is_raw => raw(&mut page, parts.as_slice()),
        Some(OfferingResponse::Messages(_, messages)) if is_raw => raw(&mut page, messages),
        Some(OfferingResponse::Contents(parts)) => {
            if parts.is_empty() {
                page.line(Role::Dim, "empty");
            }
            let look = TextLook::of(parts.iter());
            for part in parts.iter() {
                part_of(&mut page, part, parts.len() > 1, look);
            }
        }
        Some(OfferingResponse::Messages(about, messages)) => {
            if let Some(about) = about {
                page.text(Role::Dim, about);
            }
            let look = TextLook::of(messages.iter().map(|message| &message["content"]));
            for message in messages {
                page.heading(text_of(message, "role").unwrap_or_default());
                presentation::block(&mut page, &message["content"], look);
            }
        }
    }
    page
}

/// One part of a resource, under its address where there are several.
fn part_of(page: &mut ScrollText, part: &Value, is_one_of_several: bool, look: TextLook) {
    if is_one_of_several {
        page.heading(text_of(part, "uri").unwrap_or_default());
    }
    match text_of(part, "text") {
        Some(text) => {
            let media_type = text_of(part, "mimeType").unwrap_or("text");
            page.fact("type", format!("{media_type}, {}", show_size(text.len() as u64)));
            let block = json!({ "type": "text", "text": text, "mimeType": media_type });
            presentation::block(page, &block, look);
        }
        None => presentation::block(page, &json!({ "type": "resource", "resource": part }), look),
    }
}

pub fn only_text(parts: &[Value]) -> Option<String> {
    let [part] = parts else { return None };
    text_of(part, "text").map(str::to_owned)
}

pub fn about(tree: &OfferingTree, row: &OfferingRow) -> ScrollText {
    let mut page = ScrollText::default();
    let count = |page: &mut ScrollText, server: &OfferingServer, kind: OfferingKind| {
        page.line(Role::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
    };
    match row {
        OfferingRow::Server(name) => {
            let Some(server) = tree.server(name) else { return page };
            for kind in OfferingKind::VARIANTS {
                count(&mut page, server, *kind);
            }
            if server.is_listing {
                page.line(Role::Dim, "loading…");
            }
            let Some(offerings) = &server.offerings else { return page };
            for error in &offerings.errors {
                page.page(&present::messages::failure(error));
            }
            for problem in &offerings.problems {
                page.line(Role::Warning, format!("! {problem}"));
            }
        }
        OfferingRow::Group(name, kind) => {
            tree.server(name).into_iter().for_each(|server| count(&mut page, server, *kind));
        }
        OfferingRow::Item(item) => {
            tree.offering(item).into_iter().for_each(|offering| about_item(&mut page, offering));
        }
    }
    page
}

fn about_item(page: &mut ScrollText, item: &Offering) {
    let hint = match item.kind {
        OfferingKind::Resource => {
            page.fact("uri", &item.id);
            "Press Enter to read it."
        }
        OfferingKind::Template => {
            page.fact("template", &item.id);
            "Press Enter to fill it in."
        }
        OfferingKind::Prompt => "Press Enter to fill it in and show its messages.",
    };
    page.fact("name", &item.name);
    if let Some(title) = &item.title {
        page.fact("title", title);
    }
    if let Some(description) = &item.description {
        page.text(Role::Plain, description);
    }
    for argument in &item.arguments {
        let mark = if argument.required { "* " } else { "  " };
        let about = argument.description.as_deref().or(argument.title.as_deref());
        page.push(vec![
            (Role::Key, mark.to_owned()),
            (Role::Name, argument.name.clone()),
            (Role::Plain, format!("  {}", about.unwrap_or_default())),
        ]);
    }
    if let Some(media_type) = &item.mime_type {
        page.fact("type", media_type);
    }
    if let Some(size) = item.size {
        page.fact("size", show_size(size));
    }
    for warning in &item.warnings {
        page.line(Role::Warning, format!("! {warning}"));
    }
    page.line(Role::Dim, hint);
}

fn raw(page: &mut ScrollText, values: &[Value]) {
    page.text(Role::Plain, &json::pretty(&values));
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::model::Completion;
    use crate::tui::app::AppState;
    use crate::tui::event::{AppEvent, UserInput};
    use crate::tui::tests::drawing::{ASCII, picture};
    use crate::tui::tests::press;
    use crate::tui::theme::Theme;
    use crate::tui::views::offerings::tests::{contents, listed, offered, resource};
    use crate::tui::views::offerings::tree::ServerOfferings;

    fn sized(width: u16, height: u16) -> AppState {
        let mut state = listed();
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        state
    }

    /// A prompt whose first argument is being written, with suggestions.
    fn asking(width: u16, height: u16) -> AppState {
        let mut state = sized(width, height);
        press(&mut state, &["/", "greet"]);
        press(&mut state, &["<enter>"]);
        let values = vec!["ada".to_owned(), "alan".to_owned()];
        let completion = Completion { values, total: Some(12), has_more: None };
        let asking = state.offerings.asking.as_mut().unwrap();
        let query = asking.query().unwrap();
        asking.completed(query, Ok(completion), &mut state.context);
        press(&mut state, &["<right>"]);
        state
    }

    fn opened(width: u16, height: u16) -> AppState {
        let mut state = sized(width, height);
        press(&mut state, &["jj", "<enter>"]);
        let text = json!({ "uri": "memo://one", "mimeType": "text/plain", "text": "first memo\n" });
        contents(&mut state, 1, vec![text]);
        state
    }

    #[test]
    fn resources_in_120_by_40() {
        insta::assert_snapshot!(picture(&opened(120, 40), ASCII));
    }

    #[test]
    fn a_prompt_in_80_by_24() {
        insta::assert_snapshot!(picture(&asking(80, 24), Theme::default()));
    }

    #[test]
    fn resources_and_a_prompt_in_60_by_16_and_40_by_10() {
        let (tree, form) = (picture(&sized(60, 16), ASCII), picture(&asking(60, 16), ASCII));
        let (small, text) = (picture(&asking(40, 10), ASCII), picture(&opened(40, 10), ASCII));
        insta::assert_snapshot!(format!("{tree}\n{form}\n{small}\n{text}"));
    }

    #[test]
    fn hostile_names_and_contents_are_shown_escaped() {
        let evil = "\u{1b}]0;x\u{7}\u{202e}\u{9b}31m\nerror: fake";
        let mut state = sized(120, 40);
        let mut hostile = resource(evil);
        hostile.description = Some(evil.to_owned());
        hostile.mime_type = Some(evil.to_owned());
        let lists = ServerOfferings {
            items: vec![hostile.into()],
            problems: vec![evil.to_owned()],
            ..Default::default()
        };
        offered(&mut state, "memo", lists);
        press(&mut state, &["g", "jj", "<enter>"]);
        let part = json!({ "mimeType": evil, "text": evil });
        let about = picture(&state, Theme::default());
        contents(&mut state, 1, vec![part]);
        for seen in [about, picture(&state, Theme::default())] {
            assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen}");
            assert!(seen.contains("␛]0;x") && !seen.contains('\u{202e}'), "{seen}");
        }
    }
}
