// Browsers let no page opened from file:// read another one, so the search results come without excerpts there.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
