#!/usr/bin/env node
// Starts the program of this platform, which is a package of its own, in place of this process.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const { isatty } = require("node:tty");

const platform = `${process.platform}-${process.arch}`;
const part = `@toolhost/${platform}`;

function fail(message) {
  console.error(`toolhost: ${message}`);
  process.exit(1);
}

function find() {
  if (!(part in require("../package.json").optionalDependencies)) {
    fail(`there is no package for ${platform}; build the program from its sources with cargo instead`);
  }
  try {
    return require.resolve(`${part}/toolhost${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    return fail(`the package ${part} is missing; install toolhost again on this platform, with --include=optional`);
  }
}

// Where Node cannot become the program, this process waits for it, and ends as it does.
function wait(program, args) {
  const child = spawn(program, args, { stdio: "inherit" });
  // A terminal sends the signals of its keys to the program too, which must not get them twice.
  const keys = isatty(0) ? ["SIGINT", "SIGQUIT"] : [];
  for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) {
    process.on(signal, () => keys.includes(signal) || child.kill(signal));
  }
  child.on("error", (error) => fail(error.message));
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exit(code);
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const program = find();
const args = process.argv.slice(2);
if (typeof process.execve === "function" && process.platform !== "win32") {
  try {
    accessSync(program, constants.X_OK); // Node aborts when execve fails
  } catch (error) {
    fail(error.message);
  }
  process.execve(program, [program, ...args]);
} else {
  wait(program, args);
}
