//! What every engine has to do, written once.
