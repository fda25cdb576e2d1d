"""Tasks on text: translation, pronunciation, language models, classes of sentences and documents."""
