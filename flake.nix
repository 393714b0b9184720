{
  description = "Terminal console and command line for tools and MCP servers";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      crate = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).package;
      package = pkgs: pkgs.rustPlatform.buildRustPackage {
        pname = crate.name;
        version = crate.version;
        src = self;
        cargoLock.lockFile = ./Cargo.lock;
        cargoBuildFlags = [ "--bin" "toolhost" ];
        doCheck = false; # the tests need servers, terminals and a network of their own
        nativeBuildInputs = [ pkgs.installShellFiles ];
        postInstall = ''
          export HOME=$TMPDIR
          mkdir man
          $out/bin/toolhost man --dir man -q
          installManPage man/*.1
          for shell in bash fish zsh; do
            $out/bin/toolhost completions $shell >toolhost.$shell
          done
          installShellCompletion toolhost.{bash,fish,zsh}
        '';
        meta = {
          inherit (crate) description;
          license = pkgs.lib.licenses.mit;
          mainProgram = "toolhost";
        };
      };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
