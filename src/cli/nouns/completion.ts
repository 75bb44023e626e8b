import type { Verb } from '../table.ts';

const scripts: Record<string, string> = {
  bash: `_corral() {
  local IFS=$'\\n'
  COMPREPLY=($(corral completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _corral corral`,
  zsh: `#compdef corral
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_corral() {
  local -a found
  found=("\${(@f)$(corral completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -a found || _files
}
compdef _corral corral`,
  fish: `function __corral_words
  corral completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c corral -f -a '(__corral_words)'
complete -c corral -F -n 'test -z (__corral_words | string collect)'`,
};

const shell = (name: string, place: string): Verb => ({
  name,
  about: `The script for ${name}.`,
  examples: [
    [place, 'for every shell from now on'],
    ['', 'look at it'],
  ],
  run: async ({ output }) => output.done(scripts[name]!, { shell: name, script: scripts[name] }),
});

/** `corral completion …` */
export const completion: readonly Verb[] = [
  shell('bash', '>> ~/.bashrc'),
  shell('zsh', '>> ~/.zshrc'),
  shell('fish', '> ~/.config/fish/completions/corral.fish'),
  {
    name: 'words',
    arguments: ['[words...]'],
    about: 'Completions for the given words; the scripts use it.',
    examples: [
      ['-- browsers cr', 'prints create'],
      ['-- browsers create --he', 'prints --headless'],
    ],
    run: async (call) => (await import('../does/completion.ts')).complete(call),
  },
];
