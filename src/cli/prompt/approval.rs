//! The approval question before a call.

use super::YesNoQuestion;
use crate::host::approval::ApprovalRequest;
use crate::present::approval;

pub(super) fn question(request: &ApprovalRequest<'_>) -> YesNoQuestion {
    YesNoQuestion {
        page: approval::page(request, false),
        details: Some(approval::page(request, true)),
        words: "Call it?",
        offers_author: false,
    }
}
