//! Semantic styles and their colours.

use ratatui::style::Color::{
    self, Black, Blue, Cyan, Green, LightBlue, LightCyan, LightGreen, LightMagenta, LightRed,
    LightYellow, Magenta, Red, Reset, White, Yellow,
};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;

pub use crate::present::Role;
use crate::tui::widgets::picture::cell_colour;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ColourScheme {
    #[default]
    Default,
    Light,
    HighContrast,
    /// No colour at all: weight and reversal. Not one colour may be set then, because the reset of
    /// a colour takes weight and reversal with it.
    Mono,
}

impl ColourScheme {
    pub const ALL: [Self; 4] = [Self::Default, Self::Light, Self::HighContrast, Self::Mono];

    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }
}

/// What a person can give a colour, by its name in `console.yaml`.
pub const ROLES: [(&str, Role); 26] = [
    ("title", Role::Title),
    ("name", Role::Name),
    ("dim", Role::Dim),
    ("success", Role::Success),
    ("warning", Role::Warning),
    ("error", Role::Error),
    ("hint", Role::Hint),
    ("question", Role::Question),
    ("sent", Role::Sent),
    ("received", Role::Received),
    ("example", Role::Example),
    ("selected", Role::Selected),
    ("selected-unfocused", Role::SelectedUnfocused),
    ("focused-frame", Role::FocusedFrame),
    ("frame", Role::Frame),
    ("key", Role::Key),
    ("json-key", Role::JsonKey),
    ("json-text", Role::JsonText),
    ("json-number", Role::JsonNumber),
    ("json-word", Role::JsonWord),
    ("server-1", Role::Hue(0)),
    ("server-2", Role::Hue(1)),
    ("server-3", Role::Hue(2)),
    ("server-4", Role::Hue(3)),
    ("server-5", Role::Hue(4)),
    ("server-6", Role::Hue(5)),
];

/// The colours that a person chose, in the order of [`ROLES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnColours(pub [Option<Color>; ROLES.len()]);

impl OwnColours {
    pub const NONE: Self = Self([None; ROLES.len()]);

    fn of(self, role: Role) -> Option<Color> {
        ROLES.iter().zip(self.0).find(|((_, named), _)| *named == role)?.1
    }
}

/// How a person wants the console to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appearance {
    /// The colour scheme, from `console.yaml` or the palette.
    pub palette: ColourScheme,
    pub own: OwnColours,
    pub has_colour: bool,
    pub ascii: bool,
    pub has_reduced_motion: bool,
    pub mouse: bool,
    pub clock: bool,
    pub images: bool,
    pub depth: ColourDepth,
}

impl Default for Appearance {
    fn default() -> Self {
        Self {
            palette: ColourScheme::Default,
            own: OwnColours::NONE,
            has_colour: true,
            ascii: false,
            has_reduced_motion: false,
            mouse: true,
            clock: false,
            images: true,
            depth: ColourDepth::Sixteen,
        }
    }
}

impl Appearance {
    /// The effective scheme: without colour there is only one palette, whatever was chosen.
    pub fn theme(self) -> Theme {
        let palette = if self.has_colour { self.palette } else { ColourScheme::Mono };
        Theme { palette, ascii: self.ascii, depth: self.depth, own: self.own }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourDepth {
    /// The 16 colours that a person gave the terminal.
    #[default]
    Sixteen,
    Indexed,
    True,
}

type Rgb = [u8; 3];

/// A colour in each scheme: on dark and on light ground as 24 bits and as one of 16, and in high
/// contrast.
#[derive(Debug, Clone, Copy)]
struct Ink {
    dark: (Rgb, Color),
    light: (Rgb, Color),
    strong: Color,
}

const fn ink(dark: (Rgb, Color), light: (Rgb, Color), strong: Color) -> Ink {
    Ink { dark, light, strong }
}

const ACCENT: Ink = ink(([122, 190, 255], Cyan), ([29, 78, 216], Blue), White);
const OK: Ink = ink(([158, 206, 106], Green), ([22, 101, 52], Green), LightGreen);
const AMBER: Ink = ink(([240, 185, 100], Yellow), ([146, 64, 14], Magenta), LightYellow);
const RED: Ink = ink(([255, 123, 138], Red), ([185, 28, 28], Red), LightRed);
const VIOLET: Ink = ink(([199, 160, 255], Magenta), ([109, 40, 217], Magenta), LightMagenta);
const BLUE: Ink = ink(([130, 170, 255], LightBlue), ([29, 78, 216], Blue), LightCyan);
const TEAL: Ink = ink(([125, 207, 220], Cyan), ([14, 100, 125], Cyan), LightCyan);
const ORANGE: Ink = ink(([255, 170, 110], Yellow), ([154, 52, 18], Magenta), LightYellow);
const PINK: Ink = ink(([245, 150, 200], LightMagenta), ([157, 23, 77], Magenta), LightMagenta);
const GREY: Ink = ink(([148, 156, 190], Reset), ([82, 88, 100], Reset), Reset);
const LINE: Ink = ink(([90, 99, 140], Reset), ([170, 176, 190], Reset), White);
const HUES: [Ink; Role::HUES as usize] = [TEAL, PINK, BLUE, ORANGE, VIOLET, OK];
const ON_FILLED: Ink = ink(([24, 25, 38], Black), ([255, 255, 255], White), Black);
/// The ground of the chosen line, and the text on it.
const CHOSEN: Ink = ink(([55, 66, 110], Reset), ([207, 222, 255], Reset), Reset);
const ON_CHOSEN: Ink = ink(([238, 241, 255], Reset), ([20, 30, 70], Reset), Reset);
/// The ground of the chosen line of a list without the focus.
const MARKED: Ink = ink(([44, 48, 70], Reset), ([228, 232, 240], Reset), Reset);

/// Meanings to styles, and the characters lines are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub palette: ColourScheme,
    pub ascii: bool,
    pub depth: ColourDepth,
    pub own: OwnColours,
}

impl Theme {
    pub fn style(self, meaning: Role) -> Style {
        let usual = self.usual_style(meaning);
        let own = self.own.of(meaning).filter(|_| self.palette != ColourScheme::Mono);
        let own = own.and_then(|colour| match (colour, self.depth) {
            (Color::Rgb(..), ColourDepth::Sixteen) => None,
            (Color::Rgb(r, g, b), ColourDepth::Indexed) => Some(cell_colour([r, g, b], false)),
            _ => Some(colour),
        });
        match (own, meaning) {
            (None, _) => usual,
            (Some(ground), Role::Selected | Role::SelectedUnfocused) => {
                Style::new().bg(ground).add_modifier(Modifier::BOLD)
            }
            (Some(colour), _) => usual.fg(colour),
        }
    }

    fn usual_style(self, meaning: Role) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let colour = |ink| self.colour(ink).map_or(plain, |colour| plain.fg(colour));
        match meaning {
            Role::Plain => plain,
            Role::Title | Role::Key => bold,
            Role::Name | Role::FocusedFrame => colour(ACCENT).patch(bold),
            Role::Frame if self.depth == ColourDepth::Sixteen => plain,
            Role::Frame => colour(LINE),
            Role::Dim => match (self.palette, self.depth) {
                (ColourScheme::HighContrast, _) => plain,
                (ColourScheme::Mono, _) | (_, ColourDepth::Sixteen) => {
                    plain.add_modifier(Modifier::DIM)
                }
                _ => colour(GREY),
            },
            Role::Example => self.style(Role::Dim).add_modifier(Modifier::ITALIC),
            Role::JsonKey => colour(TEAL),
            Role::Hint => colour(ACCENT),
            Role::JsonWord | Role::Question => colour(VIOLET),
            Role::Success | Role::JsonText | Role::Received => colour(OK),
            Role::Warning => colour(AMBER),
            Role::JsonNumber => colour(ORANGE),
            Role::Sent => colour(BLUE),
            Role::Hue(at) => colour(HUES[usize::from(at) % HUES.len()]),
            Role::Error => colour(RED).patch(bold),
            Role::Selected => self.ground(CHOSEN).unwrap_or_else(|| {
                // One bar, whatever the colours of what stands on it.
                let fg = (self.palette != ColourScheme::Mono).then_some(Color::Reset);
                let bar = Style { fg, ..plain.add_modifier(Modifier::REVERSED) };
                bar.remove_modifier(Modifier::DIM)
            }),
            Role::SelectedUnfocused => {
                self.ground(MARKED).unwrap_or(plain.add_modifier(Modifier::UNDERLINED))
            }
        }
    }

    pub fn chip(self, meaning: Role) -> Style {
        let style = self.style(meaning);
        match (style.fg, self.colour(ON_FILLED)) {
            (Some(ground), Some(text)) if ground != Color::Reset => {
                Style::new().fg(text).bg(ground).add_modifier(Modifier::BOLD)
            }
            _ => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// Text on a ground of its own; `None` where reversal has to do.
    fn ground(self, ground: Ink) -> Option<Style> {
        let has_grounds = self.depth != ColourDepth::Sixteen
            && matches!(self.palette, ColourScheme::Default | ColourScheme::Light);
        let (ground, text) = (self.colour(ground)?, self.colour(ON_CHOSEN)?);
        has_grounds.then(|| Style::new().bg(ground).fg(text).add_modifier(Modifier::BOLD))
    }

    fn colour(self, ink: Ink) -> Option<Color> {
        let (exact, named) = match self.palette {
            ColourScheme::Mono => return None,
            ColourScheme::HighContrast => return Some(ink.strong),
            ColourScheme::Default => ink.dark,
            ColourScheme::Light => ink.light,
        };
        Some(match self.depth {
            ColourDepth::Sixteen => named,
            depth => cell_colour(exact, depth == ColourDepth::True),
        })
    }

    /// The lines around a pane; those of the focused one are told apart without colour, too.
    pub fn border(self, focused: bool) -> border::Set<'static> {
        const ASCII: border::Set<'static> = border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        };
        match (self.ascii, focused && self.palette == ColourScheme::Mono) {
            (true, _) if focused => {
                border::Set { horizontal_top: "=", horizontal_bottom: "=", ..ASCII }
            }
            (true, _) => ASCII,
            (false, true) => border::THICK,
            (false, false) => border::ROUNDED,
        }
    }

    pub fn pointer(self) -> &'static str {
        if self.ascii { "> " } else { "❯ " }
    }

    /// Before what can be folded: whether it is.
    pub fn fold(self, is_open: bool) -> &'static str {
        match (self.ascii, is_open) {
            (true, true) => "- ",
            (true, false) => "+ ",
            (false, true) => "▾ ",
            (false, false) => "▸ ",
        }
    }

    pub fn more(self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn light(colour: Color) -> f64 {
        let Color::Rgb(red, green, blue) = colour else { panic!("{colour:?}") };
        let part = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.039_28 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
    }

    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (light(a) + 0.05, light(b) + 0.05);
        a.max(b) / a.min(b)
    }

    /// The WCAG's least contrast for text.
    const LEAST: f64 = 4.5;

    #[test]
    fn every_text_stands_out_from_its_ground() {
        let roles = [
            Role::Name,
            Role::Dim,
            Role::Example,
            Role::Success,
            Role::Warning,
            Role::Error,
            Role::Question,
            Role::Sent,
            Role::Received,
            Role::JsonKey,
            Role::JsonText,
            Role::JsonNumber,
            Role::JsonWord,
        ];
        let hues = (0..6).map(Role::Hue);
        let roles: Vec<Role> = roles.into_iter().chain(hues).collect();
        // From black to the usual dark grey and bluish grounds; from white to a light grey.
        let dark = [Color::Rgb(0, 0, 0), Color::Rgb(30, 30, 30), Color::Rgb(36, 39, 58)];
        let bright = [Color::Rgb(255, 255, 255), Color::Rgb(239, 241, 245)];
        for (palette, grounds) in
            [(ColourScheme::Default, &dark[..]), (ColourScheme::Light, &bright[..])]
        {
            let depth = ColourDepth::True;
            let theme = Theme { palette, depth, ..Theme::default() };
            for role in &roles {
                let text = theme.style(*role).fg.unwrap();
                for ground in grounds {
                    let seen = contrast(text, *ground);
                    assert!(seen >= LEAST, "{palette:?} {role:?} on {ground:?}: {seen:.2}");
                }
                let chip = theme.chip(*role);
                let seen = contrast(chip.fg.unwrap(), chip.bg.unwrap());
                assert!(seen >= LEAST, "{palette:?} a chip of {role:?}: {seen:.2}");
            }
            for role in [Role::Selected, Role::SelectedUnfocused] {
                let style = theme.style(role);
                let seen = contrast(style.fg.unwrap(), style.bg.unwrap());
                assert!(seen >= LEAST, "{palette:?} {role:?}: {seen:.2}");
            }
        }
    }

    #[test]
    fn a_colour_of_ones_own_holds_where_the_terminal_has_it() {
        let mut own = OwnColours::NONE;
        let set = |own: &mut OwnColours, name: &str, colour| {
            let at = ROLES.iter().position(|(role, _)| *role == name).unwrap();
            own.0[at] = Some(colour);
        };
        set(&mut own, "error", Color::Rgb(255, 0, 0));
        set(&mut own, "hint", Color::Green);
        set(&mut own, "selected", Color::Blue);
        let theme = |palette, depth| Theme { palette, depth, ascii: false, own };
        let default = ColourScheme::Default;
        let fg = |theme: Theme, role| theme.style(role).fg;
        let whole = theme(default, ColourDepth::True);
        assert_eq!(fg(whole, Role::Error), Some(Color::Rgb(255, 0, 0)));
        assert_eq!(whole.style(Role::Selected).bg, Some(Color::Blue));
        assert_eq!(
            fg(whole, Role::Warning),
            fg(Theme { own: OwnColours::NONE, ..whole }, Role::Warning)
        );
        let indexed = theme(default, ColourDepth::Indexed);
        assert_eq!(fg(indexed, Role::Error), Some(Color::Indexed(196)));
        let few = theme(default, ColourDepth::Sixteen);
        assert_eq!(
            (fg(few, Role::Error), fg(few, Role::Hint)),
            (Some(Color::Red), Some(Color::Green))
        );
        assert_eq!(fg(theme(ColourScheme::Mono, ColourDepth::True), Role::Error), None);
    }

    #[test]
    fn without_colour_no_role_sets_one_and_a_choice_is_still_seen() {
        let theme = Theme { palette: ColourScheme::Mono, ..Theme::default() };
        for role in [Role::Name, Role::Error, Role::Selected, Role::Hue(3)] {
            for style in [theme.style(role), theme.chip(role)] {
                assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
                assert!(!style.add_modifier.is_empty() || role == Role::Hue(3), "{role:?}");
            }
        }
    }
}
