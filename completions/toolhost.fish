complete --keep-order --exclusive --command toolhost --arguments "(COMPLETE=fish toolhost -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
