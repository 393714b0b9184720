//! A shape of JSON: its keys, and where each value comes from.

/// A type of documented JSON and its `From`. What is computed for several keys stands in `with`.
macro_rules! shape {
    (
        $(#[$attribute:meta])*
        $vis:vis $name:ident $(<$lifetime:lifetime>)? of $from:tt: $model:ty
        $(, with { $($before:tt)* })? {
            $($(#[$of_key:meta])* $key:ident: $type:ty = $value:expr,)*
        }
    ) => {
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        $(#[$attribute])*
        $vis struct $name $(<$lifetime>)? {
            $($(#[$of_key])* pub $key: $type,)*
        }

        impl $(<$lifetime>)? From<$model> for $name $(<$lifetime>)? {
            fn from($from: $model) -> Self {
                $($($before)*)?
                Self { $($key: $value,)* }
            }
        }
    };
}

pub(crate) use shape;
