//! Semantic styles and their colours.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// All schemes, in the order in which the palette lists them.
    pub const ALL: [Self; 4] = [Self::Default, Self::Light, Self::HighContrast, Self::Mono];

    /// The name in `console.yaml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Light => "light",
            Self::HighContrast => "high-contrast",
            Self::Mono => "mono",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }
}

/// How a person wants the console to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appearance {
    /// The colour scheme, from `console.yaml` or the palette.
    pub palette: ColourScheme,
    pub has_colour: bool,
    /// Whether only ASCII characters are drawn.
    pub ascii: bool,
    /// Whether spinners and other movement are left out.
    pub has_reduced_motion: bool,
    pub mouse: bool,
    /// Whether the time of day is shown.
    pub clock: bool,
    /// Whether pictures are shown in results.
    pub images: bool,
    /// Whether the terminal knows 16 million colours; 256 otherwise.
    pub has_true_colour: bool,
}

impl Default for Appearance {
    fn default() -> Self {
        let palette = ColourScheme::default();
        Self {
            palette,
            has_colour: true,
            ascii: false,
            has_reduced_motion: false,
            mouse: false,
            clock: false,
            images: true,
            has_true_colour: false,
        }
    }
}

impl Appearance {
    /// The effective scheme: without colour there is only one palette, whatever was chosen.
    pub fn theme(self) -> Theme {
        let palette = if self.has_colour { self.palette } else { ColourScheme::Mono };
        Theme { palette, ascii: self.ascii }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StyleRole {
    /// Text without a special role.
    Plain,
    Title,
    Name,
    /// Labels, hints and other secondary text.
    Dim,
    Success,
    /// Something to look at that is not an error.
    Warning,
    Error,
    /// The chosen line of a list that has the focus.
    Selected,
    /// The chosen line of another list.
    SelectedUnfocused,
    FocusedFrame,
    Frame,
    Key,
    JsonKey,
    JsonText,
    JsonNumber,
    /// `true`, `false` or `null` in JSON.
    JsonWord,
}

/// Meanings to styles, and the characters lines are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub palette: ColourScheme,
    /// Whether only ASCII characters are drawn.
    pub ascii: bool,
}

impl Theme {
    pub fn style(self, meaning: StyleRole) -> Style {
        let plain = Style::new();
        let colour = |default, light, strong| match self.palette {
            ColourScheme::Default => plain.fg(default),
            ColourScheme::Light => plain.fg(light),
            ColourScheme::HighContrast => plain.fg(strong),
            ColourScheme::Mono => plain,
        };
        match meaning {
            StyleRole::Plain | StyleRole::Frame => plain,
            StyleRole::Title | StyleRole::Key => plain.add_modifier(Modifier::BOLD),
            StyleRole::Name | StyleRole::FocusedFrame => {
                colour(Color::Cyan, Color::Blue, Color::White).add_modifier(Modifier::BOLD)
            }
            StyleRole::Dim => match self.palette {
                ColourScheme::HighContrast => plain,
                _ => plain.add_modifier(Modifier::DIM),
            },
            StyleRole::JsonKey => colour(Color::Cyan, Color::Blue, Color::White),
            StyleRole::JsonWord => colour(Color::Magenta, Color::Red, Color::LightCyan),
            StyleRole::Success | StyleRole::JsonText => {
                colour(Color::Green, Color::Green, Color::LightGreen)
            }
            StyleRole::Warning | StyleRole::JsonNumber => {
                colour(Color::Yellow, Color::Magenta, Color::LightYellow)
            }
            StyleRole::Error => {
                colour(Color::Red, Color::Red, Color::LightRed).add_modifier(Modifier::BOLD)
            }
            StyleRole::Selected => plain.add_modifier(Modifier::REVERSED),
            StyleRole::SelectedUnfocused => plain.add_modifier(Modifier::UNDERLINED),
        }
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
        match (self.ascii, focused) {
            (true, true) => border::Set { horizontal_top: "=", horizontal_bottom: "=", ..ASCII },
            (true, false) => ASCII,
            (false, true) => border::THICK,
            (false, false) => border::PLAIN,
        }
    }

    pub fn pointer(self) -> &'static str {
        if self.ascii { "> " } else { "▸ " }
    }

    /// Says that something was cut.
    pub fn more(self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }
}
